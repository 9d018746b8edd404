// One process of the load of load.js: calls a limiter at an even pace, and answers each job { ms } with how long each decision took.
import { createLimiter, gcra } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { keepDenials, topKeys } from '@sluice/metrics'
import { postgresStore } from '@sluice/postgres'

const EVERY_MS = 5
const KEYS = 200

const [url = '', secret = ''] = process.argv.slice(2)
const store = url.startsWith('redis') ? redisStore(url) : postgresStore(url)
const policies = [gcra({ limit: 1_000_000, window: '1h' })]
const limiter = createLimiter({ name: 'api', policies, store, onStoreError: 'throw', deadline: '1m' })
const denials = keepDenials({ secret, fleet: store })
topKeys(limiter, { fleet: store })

let turn = 0
/** @param {number[]} took */
async function call(took) {
  const began = performance.now()
  const decision = await limiter.consume(`key:${turn++ % KEYS}`)
  took.push(performance.now() - began)
  if (!decision.allowed) denials.keep(decision)
}

/** @param {{ ms: number }} job */
async function round({ ms }) {
  /** @type {number[]} */
  const took = []
  const calls = []
  const began = performance.now()
  for (let at = 0; at < ms; at += EVERY_MS) {
    const left = began + at - performance.now()
    if (left > 0) await new Promise((resolve) => setTimeout(resolve, left))
    calls.push(call(took))
  }
  await Promise.all(calls)
  process.send?.(took)
}
process.on('message', (/** @type {{ ms: number }} */ job) => void round(job))
process.on('disconnect', () => process.exit())
await call([])
process.send?.('ready')
