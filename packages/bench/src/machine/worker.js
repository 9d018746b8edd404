// A worker of a cluster that calls its limiter in a closed loop.
import { createLimiter, gcra } from '@sluice/core'
import { median } from '@sluice/harness/figures'
import { machineStore } from '@sluice/machine'
import { redisStore } from '@sluice/core/redis'
import { RateLimiterCluster } from 'rate-limiter-flexible'

const { KIND: kind = '', FOLDER: folder = '', REDIS: url = '' } = process.env
const LIMIT = 1_000_000
const KEYS = 1000
const consume = kind === 'flexible' ? flexible() : await sluice()

/** @returns {(key: string) => Promise<unknown>} */
function flexible() {
  const limiter = new RateLimiterCluster({
    keyPrefix: 'bench',
    points: LIMIT,
    duration: 60,
    timeoutMs: 10_000,
  })
  return (key) => limiter.consume(key)
}

/** @returns {Promise<(key: string) => Promise<unknown>>} */
async function sluice() {
  const store = kind === 'redis' ? redisStore(url) : machineStore({ name: kind, folder, serve: false })
  await store.ready()
  const policies = [gcra({ limit: LIMIT, window: '1m' })]
  const limiter = createLimiter({ name: 'bench', policies, store, deadline: '10s', onStoreError: 'throw' })
  return (key) => limiter.consume(key)
}

await consume('first')
process.on('message', (/** @type {{ callers?: number, ms?: number }} */ { callers, ms }) => {
  if (callers !== undefined && ms !== undefined) void measure(callers, ms)
})
process.send?.({ bench: {} })

/** @param {number} callers @param {number} ms */
async function measure(callers, ms) {
  /** @type {number[]} */
  const latencies = []
  let decisions = 0
  const until = performance.now() + ms
  const cpu = process.cpuUsage()
  await Promise.all(
    Array.from({ length: callers }, async () => {
      for (let began = performance.now(); began < until;) {
        await consume(`user:${decisions++ % KEYS}`)
        const ended = performance.now()
        if (decisions % 16 === 0) latencies.push(ended - began)
        began = ended
      }
    }),
  )
  const { user, system } = process.cpuUsage(cpu)
  process.send?.({ bench: { decisions, cpuUs: user + system, p50Us: 1000 * median(latencies) } })
}
