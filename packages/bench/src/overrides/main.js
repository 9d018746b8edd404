// npm run bench -- overrides [ROUNDS]: CPU of a decision in memory of a limiter with 10,000 overrides beside one of a limiter without,
// in pairs within one process, in both orders, the limiters made anew for each group of rounds: the median of the rounds' ratios with its
// 95 % interval. And how often twenty limiters of one store in Redis read their records. Exits with 1 unless all bars are shown to be met.
import { setTimeout as pause } from 'node:timers/promises'
import { createLimiter, gcra, memoryStore } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { monitor, startRedis } from '@sluice/harness/redis'
import { bootstrapInterval, median } from '@sluice/harness/figures'
import { verdictOf } from '../figures/verdict.js'

const OVERRIDES = 10_000
const BAR = 1.05
const READS_BAR = 1
const GROUPS = 6
const WARM_UP = 3
const CALLS = 20_000
const KEYS = 1000
const LIMITERS = 20
const SECONDS = 5

/** @typedef {{ none: number, some: number }} Round Nanoseconds of a decision without overrides, and beside them. */

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
    const groups = await measured(keyOf, overrides, first)
    const ratioOf = (/** @type {readonly Round[]} */ all) => median(all.map(({ none, some }) => some / none))
    const [low, high] = bootstrapInterval(groups, ratioOf)
    const ns = median(groups.flat().map(({ none }) => none))
    const figure = `x ${ratioOf(groups.flat()).toFixed(3)} [${low.toFixed(3)}, ${high.toFixed(3)}] of ${ns.toFixed(0)} ns, at most ${BAR}`
    report(`${form}, ${which}`, figure, verdictOf([low, high], { sense: 'at most', bound: BAR }))
  }
const reads = await readsASecond()
const isMet = reads <= READS_BAR
report(
  `${LIMITERS} limiters of one store in Redis`,
  `${reads} reads a second, at most ${READS_BAR}`,
  isMet ? 'met' : 'missed',
)

/**
 * The rounds of each group, beside so many overrides.
 * @param {(n: number) => string} keyOf @param {number} overrides @param {number} first
 */
async function measured(keyOf, overrides, first) {
  /** @type {Round[][]} */
  const groups = []
  for (let group = 0; group < GROUPS; group++) {
    const order = group % 2 === 0 ? [0, 1] : [1, 0]
    /** @type {import('@sluice/core').Limiter[]} */
    const sides = []
    for (const side of order) sides[side] = await limiterWith(side === 0 ? 0 : overrides, keyOf)
    const measuredRounds = Array.from({ length: WARM_UP + Math.ceil(rounds / GROUPS) }, (_, i) => {
      const spent = [0, 0]
      for (const side of i % 2 === 0 ? [0, 1] : [1, 0]) {
        // As those of requests, texts of their own, of which V8 knows no hash yet.
        const keys = Array.from({ length: CALLS }, (_, n) =>
          Buffer.from(keyOf(first + (n % KEYS))).toString('latin1'),
        )
        const before = process.cpuUsage()
        for (const key of keys) void sides[side]?.decide(key)
        const { user, system } = process.cpuUsage(before)
        spent[side] = ((user + system) * 1000) / CALLS
      }
      const [none = 0, some = 0] = spent
      return { none, some }
    })
    groups.push(measuredRounds.slice(WARM_UP))
  }
  return groups
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

/**
 * @param {string} what
 * @param {string} figure
 * @param {import('../figures/verdict.js').Verdict} verdict
 */
function report(what, figure, verdict) {
  console.log(`${verdict.padEnd(9)}  ${what.padEnd(41)} ${figure}`)
  if (verdict !== 'met') process.exitCode = 1
}
