// What reservations cost Redis: npm run bench -- reservations [ROUNDS]
// For each algorithm CPU of the server to reserve and settle, beside consuming and settling; and of `consume` on a key with 1,000 open
// reservations beside one with none, for a limiter that reserves. Contenders take turns in every round. Quote the ratios.
import '@sluice/calendar' // for versions of Node without Temporal
import { createLimiter } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { median } from '@sluice/harness/figures'
import { measured } from '../algorithms.js'
import { markdownOf } from '../figures/table.js'
import { startRedis } from '../processes/redis-servers.js'
import { connect } from '../redis/connection.js'
import { cpuOf, serverVersion } from '../redis/server-cpu.js'

/** @typedef {import('@sluice/core').Policy} Policy */

const rounds = Number(process.argv[2] ?? 15)
const BARS = { settle: 1.25, beside: 1.3 }
const OPEN = 1000
/** Calls of a turn, by callers at once. */
const CALLS = new Map([
  [1, 1000],
  [64, 4000],
])
const NUMBERS = { limit: 100_000, window: 3_600_000 }
const COST = 2

let isMet = true
let names = 0
const server = await startRedis()
const redis = connect(server)
try {
  /** @type {string[][]} */
  const rows = []
  for (const { label, policy } of measured) {
    const policies = [policy(NUMBERS)]
    const alone = await compared(settle(policies, false), settle(policies, true), 1)
    const crowd = await compared(settle(policies, false), settle(policies, true), 64)
    const beside = await compared(await consume(policies, 0), await consume(policies, OPEN), 1)
    rows.push([label, told(alone, BARS.settle), told(crowd, BARS.settle), told(beside, BARS.beside)])
  }
  console.log(`Redis ${await serverVersion(redis)}, ${rounds} rounds, medians of ratios of the server's CPU`)
  const columns = ['', 'reserve and settle, 1 caller', '64 callers', `consume beside ${OPEN} open`]
  console.log(markdownOf({ title: '', columns, rows }))
} finally {
  redis.disconnect()
  await server.stop()
}
process.exitCode = isMet ? 0 : 1

/** @param {number} ratio @param {number} bar */
function told(ratio, bar) {
  isMet &&= ratio <= bar
  return `${ratio.toFixed(2)} of at most ${bar}`
}

/** @param {readonly Policy[]} policies @param {boolean} reserves */
function limiterOf(policies, reserves) {
  const limiter = createLimiter({
    name: `bench ${++names}`,
    policies,
    store: redisStore(redis, { denialCache: false }),
    deadline: '10s',
    onStoreError: 'throw',
    ...(reserves && { reservations: { max: OPEN } }),
  })
  limiter.on('warning', () => {})
  return limiter
}

/** Takes units and settles them at half, on keys in turn. @param {readonly Policy[]} policies @param {boolean} reserves */
function settle(policies, reserves) {
  const limiter = limiterOf(policies, reserves)
  let calls = 0
  return async () => {
    const key = `user:${++calls % 500}`
    const decision = reserves
      ? await limiter.reserve(key, { cost: COST, ttl: '2m' })
      : await limiter.consume(key, { cost: COST })
    await decision.settle(COST / 2)
  }
}

/** Consumes on a key with open reservations. @param {readonly Policy[]} policies @param {number} open */
async function consume(policies, open) {
  const limiter = limiterOf(policies, true)
  for (let i = 0; i < open; i++) await limiter.reserve('user', { cost: 1, ttl: '10m' })
  return async () => void (await limiter.consume('user'))
}

/**
 * The median over the rounds of the CPU of the second beside the first.
 * @param {() => Promise<void>} base
 * @param {() => Promise<void>} other
 * @param {number} callers
 */
async function compared(base, other, callers) {
  const ratios = []
  for (let round = 0; round < rounds; round++) {
    const first = await turn(base, callers)
    ratios.push((await turn(other, callers)) / first)
  }
  return median(ratios)
}

/** CPU of the server in microseconds. @param {() => Promise<void>} call @param {number} callers */
async function turn(call, callers) {
  const before = await cpuOf(redis)
  let left = CALLS.get(callers) ?? 0
  const caller = async () => {
    while (left-- > 0) await call()
  }
  await Promise.all(Array.from({ length: callers }, caller))
  return (await cpuOf(redis)) - before
}
