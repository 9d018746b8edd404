// One side of main.js: prints the nanoseconds of CPU that a decision takes, or the number of series and its bound.
import { createLimiter, fixedWindow, gcra, memoryStore } from '@sluice/core'
import { observe, prometheusName, INSTRUMENTS, topKeys } from '@sluice/metrics'
import promClient from 'prom-client'

const CALLS = 2_000_000
const [variant = '', workload = ''] = process.argv.slice(2)

console.log(JSON.stringify(variant === 'series' ? await series() : [decisions()]))

function decisions() {
  const limit = workload === '10,000 keys in turn, denied' ? 50 : 1_000_000
  const store = memoryStore({ maxKeys: 4_000_000 })
  const policies = [gcra({ limit, window: '1h' })]
  const limiter = createLimiter({ name: 'api', policies, store })
  if (variant === 'observed') observe(limiter, { prometheus: promClient })
  if (variant === 'top keys') topKeys(limiter)
  const some = Array.from({ length: 10_000 }, (_, i) => `user:${i}`)
  const keys = workload === 'one key, allowed' ? some.slice(0, 1) : some
  const fresh = workload === 'all keys new' ? Array.from({ length: CALLS }, (_, i) => `new:${i}`) : keys
  for (let i = 0; i < 2_000_000; i++) void limiter.decide(keys[i % keys.length] ?? '')
  const before = process.cpuUsage()
  for (let i = 0; i < CALLS; i++) void limiter.decide(fresh[i % fresh.length] ?? '')
  const { user, system } = process.cpuUsage(before)
  return ((user + system) * 1000) / CALLS
}

async function series() {
  const windows = /** @type {const} */ (['1s', '1m', '1h', '2h', '1d'])
  const policies = windows.map((window) => fixedWindow({ limit: 3, window, name: `per ${window}` }))
  for (let l = 0; l < 10; l++) {
    const limiter = createLimiter({ name: `l${l}`, policies, store: memoryStore({ maxKeys: 100_000 }) })
    observe(limiter, { prometheus: promClient })
    for (let i = 0; i < 200_000; i++) void limiter.decide(`user:${i >> 1}`, { cost: 2 })
    await limiter.close()
  }
  const metric = promClient.register.getSingleMetric(prometheusName(INSTRUMENTS.decisions))
  const values = (await metric?.get())?.values ?? []
  return [values.length, 10 * 5 * 24]
}
