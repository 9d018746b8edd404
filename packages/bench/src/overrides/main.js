// npm run bench -- overrides [ROUNDS]: CPU of a decision in memory of a limiter with 10,000 overrides beside one of a limiter without,
// in pairs within one process, in both orders, the limiters made anew for each group of rounds: the median of the rounds' ratios with its
// 95 % interval. And how often twenty limiters of one store in Redis read their records. Exits with 1 unless all bars are shown to be met.
import { setTimeout as pause } from 'node:timers/promises'
import { createLimiter, gcra, memoryStore } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { monitor, startRedis } from '@sluice/harness/redis'
import { judgeBeside, report } from '../figures/beside.js'

const OVERRIDES = 10_000
const BAR = 1.05
const READS_BAR = 1
const CALLS = 20_000
const KEYS = 1000
const LIMITERS = 20
const SECONDS = 5

const rounds = Number(process.argv[2] ?? 90)
const policies = [gcra({ limit: 20_000_000, window: '1m' })]
const terms = { factor: 2, until: '1d', reason: 'a bench', by: 'the bench' }

/** What keys look like, by a number. */
const FORMS = {
  'user:1234': (/** @type {number} */ n) => `user:${n}`,
  '1234:log-in': (/** @type {number} */ n) => `${n}:log-in`,
  'ids of 16 hex digits': (/** @type {number} */ n) =>
    (BigInt.asUintN(64, BigInt(n + 1) * 0x9e3779b97f4a7c15n) ^ 0x5bd1e995n).toString(16).padStart(16, '0'),
}
/** Beside a process without: the overrides, and the number of the first key that is called. The first row is the error of the method. */
const BESIDE = /** @type {const} */ ({
  'no overrides': [0, 0],
  'a key without one': [OVERRIDES, OVERRIDES],
  'a key with one': [OVERRIDES, 0],
})

for (const [form, keyOf] of Object.entries(FORMS))
  for (const [which, [overrides, first]] of Object.entries(BESIDE)) {
    const sides = /** @type {const} */ ([
      () => sideOf(keyOf, 0, first),
      () => sideOf(keyOf, overrides, first),
    ])
    await judgeBeside(`${form}, ${which}`, sides, { calls: CALLS, rounds, atMost: BAR })
  }
const reads = await readsASecond()
const isMet = reads <= READS_BAR
const figure = `${reads} reads a second, at most ${READS_BAR}`
report(`${LIMITERS} limiters of one store in Redis`, figure, isMet ? 'met' : 'missed')

/**
 * A limiter beside so many overrides, which is called for keys from a number on.
 * @param {(n: number) => string} keyOf @param {number} overrides @param {number} first
 */
async function sideOf(keyOf, overrides, first) {
  const limiter = await limiterWith(overrides, keyOf)
  /** @type {string[]} */
  let keys = []
  return {
    // As those of requests, texts of their own, of which V8 knows no hash yet.
    prepare() {
      keys = Array.from({ length: CALLS }, (_, n) =>
        Buffer.from(keyOf(first + (n % KEYS))).toString('latin1'),
      )
    },
    run() {
      for (const key of keys) void limiter.decide(key)
    },
  }
}

/** @param {number} overrides @param {(n: number) => string} keyOf */
async function limiterWith(overrides, keyOf) {
  const limiter = createLimiter({ name: 'api', policies, store: memoryStore() })
  for (let n = 0; n < overrides; n++) await limiter.override(keyOf(n), terms)
  return limiter
}

/** Reads of records that a process sends in a second. */
async function readsASecond() {
  const server = await startRedis()
  const store = redisStore({ host: server.host, port: server.port })
  const limiters = Array.from({ length: LIMITERS }, (_, i) =>
    createLimiter({ name: `l${i}`, policies, store }),
  )
  await limiters[0]?.override('key', terms)
  await Promise.all(limiters.map((limiter) => limiter.consume('key')))
  const watch = await monitor(server)
  await pause(SECONDS * 1000)
  const lines = await watch.stop()
  await Promise.all(limiters.map((limiter) => limiter.close()))
  await store.close()
  await server.stop()
  return lines.filter((line) => /"eval(?:sha)?".*::records:/i.test(line)).length / SECONDS
}
