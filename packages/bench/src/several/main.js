// A call on two keys in one decision, beside two calls awaited together: npm run bench -- several [ROUNDS]
// On one Redis its CPU, script calls and time, with 64 callers and with one, and its CPU under a script that knows 16 lists beside one
// that knows its own two; in memory CPU beside one decision. The contenders take turns in every round, so that a noisy machine is noisy
// for all of them. Quote the ratios.
import { consumeAll, createLimiter, decideAll, gcra, memoryStore, slidingLog } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { median } from '@sluice/harness/figures'
import { RateLimiterUnion } from 'rate-limiter-flexible'
import { inRounds } from '../figures/rounds.js'
import { markdownOf } from '../figures/table.js'
import { flexibleOnRedis } from '../peers/flexible.js'
import { startRedis } from '../processes/redis-servers.js'
import { connect } from '../redis/connection.js'
import { cpuOf, scriptsRun, serverVersion } from '../redis/server-cpu.js'

/** @typedef {import('@sluice/core').Limiter} Limiter */
/** @typedef {import('@sluice/core').Store} Store */
/** @typedef {(key: string) => unknown} Call */
/** @typedef {{ cpu: number, scripts: number, ms: number }} Turn Of one call. */

const rounds = Number(process.argv[2] ?? 15)
const KEYS = Array.from({ length: 500 }, (_, i) => `user:${i}`)
const ALGORITHMS = { gcra, 'sliding log': slidingLog }
/** Calls of a turn, by callers at once. */
const CALLS = new Map([
  [64, 8000],
  [1, 1500],
])
const IN_MEMORY = 100_000
const BARS = { 64: { cpu: 1.15, ms: 1.1 }, 1: { cpu: 0.95, ms: 1.1 }, known: 1.2, memory: 1.8 }
/** Lists that the other script knows. */
const LISTS = 16

let isMet = true
/** @type {string[][]} */
const rows = []
const server = await startRedis()
const redis = connect(server)
try {
  const version = await serverVersion(redis)
  for (const algorithm of names()) for (const callers of CALLS.keys()) await onRedis(algorithm, callers)
  console.log(`Redis ${version}, ${rounds} rounds, medians; CPU and time beside two calls awaited together`)
  const columns = ['', '', 'Redis CPU', 'script calls', 'time']
  console.log(markdownOf({ title: '', columns, rows }))
} finally {
  redis.disconnect()
  await server.stop()
}
for (const algorithm of names()) await inMemory(algorithm)
process.exitCode = isMet ? 0 : 1

function names() {
  return /** @type {(keyof typeof ALGORITHMS)[]} */ (Object.keys(ALGORITHMS))
}

/** @param {keyof typeof ALGORITHMS} algorithm @param {number} callers */
async function onRedis(algorithm, callers) {
  const client = /** @type {import('@sluice/core/redis').RedisClient} */ (/** @type {unknown} */ (redis))
  const store = redisStore(client, { denialCache: false })
  const [one, other] = limitersOf(store, algorithm)
  const peers = ['one', 'other'].map((name) =>
    flexibleOnRedis(redis, name, { limit: 100_000, windowMs: 60_000 }),
  )
  const union = new RateLimiterUnion(...peers)
  const wide = redisStore(client, { denialCache: false, prefix: 'wide' })
  const known = Array.from({ length: LISTS }, (_, i) => limitersOf(wide, algorithm, `${60 + i}s`)[0])
  await consumeAll(known.map((limiter) => ({ limiter, key: 'all' })))
  const [last = one, butOne = other] = known.toReversed()
  /** @type {Record<string, Call>} */
  const contenders = {
    'two calls together': (key) => Promise.all([one.consume(key), other.consume(key)]),
    consumeAll: (key) => consumeAll(partsOf(one, other, key)),
    [`consumeAll, ${LISTS} lists known`]: (key) => consumeAll(partsOf(last, butOne, key)),
    RateLimiterUnion: (key) => union.consume(key),
  }
  const turns = await inRounds(Object.keys(contenders), { rounds, warmUp: true }, (name) =>
    turnOf(/** @type {Call} */ (contenders[name]), callers, CALLS.get(callers) ?? 0),
  )
  await store.close()
  await wide.close()
  const two = turns.get('two calls together') ?? []
  const bars = BARS[/** @type {1 | 64} */ (callers)]
  for (const [name, own] of turns) {
    const isOurs = name === 'consumeAll'
    const cells = [
      beside(own, two, 'cpu', isOurs ? bars.cpu : undefined),
      median(own.map(({ scripts }) => scripts)).toFixed(2),
      beside(own, two, 'ms', isOurs ? bars.ms : undefined),
    ]
    rows.push([`${algorithm}, ${callers === 1 ? '1 caller' : `${callers} callers`}`, name, ...cells])
  }
  const [own = [], among = []] = [...turns.values()].slice(1)
  const ratio = median(among.map((turn, i) => turn.cpu / (own[i]?.cpu ?? NaN)))
  console.log(
    `${algorithm}, ${callers}: a script of ${LISTS} lists beside one of two: CPU ${ratio.toFixed(2)}${verdict(ratio, BARS.known)}`,
  )
}

/**
 * The median of the rounds' ratios, with what was seen of each.
 * @param {readonly Turn[]} own @param {readonly Turn[]} two @param {'cpu' | 'ms'} figure @param {number | undefined} bar
 */
function beside(own, two, figure, bar) {
  const ratio = median(own.map((turn, i) => turn[figure] / (two[i]?.[figure] ?? NaN)))
  const us = median(own.map((turn) => turn[figure])) * (figure === 'ms' ? 1000 : 1)
  return `${ratio.toFixed(2)} (${us.toFixed(1)} us${verdict(ratio, bar)})`
}

/** @param {number} ratio @param {number | undefined} bar */
function verdict(ratio, bar) {
  if (bar === undefined) return ''
  if (ratio > bar) isMet = false
  return `, bar ${bar} ${ratio > bar ? 'missed' : 'met'}`
}

/** @param {Call} call @param {number} callers @param {number} calls @returns {Promise<Turn>} */
async function turnOf(call, callers, calls) {
  await redis.config('RESETSTAT')
  const before = await cpuOf(redis)
  const began = performance.now()
  let left = calls
  const callAgain = async () => {
    while (left-- > 0) await call(KEYS[left % KEYS.length] ?? '')
  }
  await Promise.all(Array.from({ length: callers }, callAgain))
  const ms = (performance.now() - began) / calls
  return { cpu: ((await cpuOf(redis)) - before) / calls, scripts: (await scriptsRun(redis)) / calls, ms }
}

/** @param {keyof typeof ALGORITHMS} algorithm */
async function inMemory(algorithm) {
  const [one, other] = limitersOf(memoryStore(), algorithm)
  /** @type {Record<string, Call>} */
  const contenders = {
    'one decision': (key) => one.decide(key),
    'two decisions': (key) => [one.decide(key), other.decide(key)],
    decideAll: (key) => decideAll(partsOf(one, other, key)),
  }
  const turns = await inRounds(Object.keys(contenders), { rounds, warmUp: true }, async (name) => {
    const before = process.cpuUsage()
    for (let i = 0; i < IN_MEMORY; i++) contenders[name]?.(KEYS[i % KEYS.length] ?? '')
    const { user, system } = process.cpuUsage(before)
    return (user + system) / IN_MEMORY
  })
  const alone = turns.get('one decision') ?? []
  const figures = [...turns].map(([name, own]) => {
    const ratio = median(own.map((us, i) => us / (alone[i] ?? NaN)))
    const bar = name === 'decideAll' ? BARS.memory : undefined
    return `${name} ${ratio.toFixed(2)} (${median(own).toFixed(2)} us${verdict(ratio, bar)})`
  })
  console.log(`memory, ${algorithm}, beside one decision: ${figures.join(', ')}`)
}

/** @param {Store} store @param {keyof typeof ALGORITHMS} algorithm @param {`${number}s` | '1m'} [window] @returns {[Limiter, Limiter]} */
function limitersOf(store, algorithm, window = '1m') {
  const policies = [ALGORITHMS[algorithm]({ limit: 100_000, window })]
  const settings = { policies, store, deadline: '10s', onStoreError: /** @type {const} */ ('throw') }
  const open = (/** @type {string} */ name) =>
    createLimiter({ name: `${name} ${algorithm} ${window}`, ...settings })
  return [open('one'), open('other')]
}

/** @param {Limiter} one @param {Limiter} other @param {string} key */
function partsOf(one, other, key) {
  return [
    { limiter: one, key },
    { limiter: other, key },
  ]
}
