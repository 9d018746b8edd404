// Token budgets in simulated time: calls reserve an estimate and give back what they did not use when they end. What is
// served is held against the same promise recomputed from what was really used. npm run bench -- budget
import { createLimiter, gcra, memoryStore, slidingLog, slidingWindow, tokenBucket } from '@sluice/core'
import { randomFrom } from '@sluice/harness/figures'
import { exactLog, exactWorkload, excessOfLog, excessOfWorkload } from './promises.js'

/** @import { Policy } from '@sluice/core' */
/** @import { Charge } from './promises.js' */

/**
 * @typedef {{ title: string, estimate: number, least: number, most: number, seconds: number }} Calls estimated at
 * `estimate`, used `least` to `most`, and as long as `seconds`
 * @typedef {{ at: number, used: number }} Call
 * @typedef {{ title: string, policy: Policy, bar?: number }} Contender
 */

const MINUTES = 60
const WINDOW = 60_000_000
const START = 1_767_225_600_000_000 // 2026-01-01
/** What is asked for, in real units, as a multiple of the limit. */
const DEMAND = 5
const BAR = 0.85

/** @type {readonly Calls[]} */
const WORKLOADS = [20, 60].flatMap((seconds) => [
  { title: `4,000 for about 1,000, ${seconds} s`, estimate: 4000, least: 500, most: 1500, seconds },
  { title: `30,000 for 2,000, ${seconds} s`, estimate: 30_000, least: 2000, most: 2000, seconds },
])
const BUDGET = /** @type {const} */ ({ limit: 100_000, window: '1m' })
const SLOTS = { ...BUDGET, slots: 16 }

/** @type {readonly Contender[]} */
const CONTENDERS = [
  { title: 'sliding window, 60 buckets', policy: slidingWindow({ ...BUDGET, buckets: 60 }), bar: BAR },
  { title: 'gcra', policy: gcra(BUDGET) },
  { title: 'token bucket', policy: tokenBucket(BUDGET) },
  { title: 'gcra, 16 slots', policy: gcra(SLOTS), bar: BAR },
  { title: 'token bucket, 16 slots', policy: tokenBucket(SLOTS), bar: BAR },
]

/** A log takes a slot for each unit: the same calls in units that are so much larger. */
const LOGS = [250, 1000, 10_000].map((limit) => ({
  title: `sliding log of ${limit}, cost 10 for 1 to 4`,
  policy: slidingLog({ limit, window: '1m' }),
}))

/**
 * @param {number} limit
 * @param {Calls} calls
 * @param {'even' | 'Poisson'} arrivals
 */
function demandOf(limit, { least, most }, arrivals) {
  const random = randomFrom(11)
  const gap = ((least + most) / 2 / (DEMAND * limit)) * WINDOW
  /** @type {Call[]} */
  const demand = []
  for (let at = START; at < START + MINUTES * WINDOW;) {
    demand.push({ at: Math.round(at), used: least + Math.floor(random() * (most - least + 1)) })
    at += arrivals === 'even' ? gap : -Math.log(1 - random()) * gap
  }
  return demand
}

/**
 * Lets every call ask once, and settle when it ends. `ask` returns what settles it; undefined where it was denied.
 * @param {readonly Call[]} demand
 * @param {number} length
 * @param {(call: Call) => ((at: number) => unknown) | undefined} ask
 */
async function play(demand, length, ask) {
  /** @type {{ at: number, settle: (at: number) => unknown }[]} */
  const ending = []
  let [served, ended] = [0, 0]
  for (const call of demand) {
    for (let next = ending[ended]; next && next.at <= call.at; next = ending[++ended]) {
      await next.settle(next.at)
    }
    const settle = ask(call)
    if (!settle) continue
    ending.push({ at: call.at + length, settle })
    served += call.used
  }
  for (const { at, settle } of ending.slice(ended)) await settle(at)
  return served
}

/**
 * @param {Contender} contender
 * @param {Calls} calls
 * @param {'even' | 'Poisson'} arrivals
 */
async function simulate({ policy }, calls, arrivals) {
  const { limit } = policy
  const { estimate, seconds } = calls
  const demand = demandOf(limit, calls, arrivals)
  const length = seconds * 1e6
  let now = START
  const limiter = createLimiter({
    name: 'budget',
    store: memoryStore({ clock: () => now }),
    policies: [policy],
  })
  /** @type {Charge[]} */
  const kept = []
  let noEffect = 0
  const served = await play(demand, length, ({ at, used }) => {
    now = at
    const decision = limiter.decide('tenant', { cost: estimate })
    if (!('allowed' in decision) || !decision.allowed) return undefined
    const charge = { at, cost: estimate }
    kept.push(charge)
    return async (ends) => {
      now = ends
      const difference = await decision.settle(used)
      charge.cost += difference
      if (difference === 0) noEffect++
    }
  })
  const isWindow = policy.algorithm.name.startsWith('sliding')
  const exact = isWindow ? exactLog(limit, WINDOW) : exactWorkload(limit, WINDOW, length)
  const most = await play(demand, length, ({ at, used }) => {
    if (!exact.fits(at, estimate)) return undefined
    const charge = { at, cost: estimate }
    exact.add(charge)
    return () => void (charge.cost = used)
  })
  const excess = (isWindow ? excessOfLog : excessOfWorkload)(kept, limit, WINDOW)
  return { share: served / most, perMinute: served / MINUTES, excess, noEffect, settled: kept.length }
}

let failed = 0

/** @param {Contender} contender @param {Calls} calls @param {'even' | 'Poisson'} arrivals */
async function show(contender, calls, arrivals) {
  const { share, perMinute, excess, noEffect, settled } = await simulate(contender, calls, arrivals)
  const { title, policy, bar = 0 } = contender
  const held = share >= bar && excess === 0
  if (!held) failed++
  const columns = [
    title.padEnd(42),
    arrivals.padEnd(7),
    `${share.toFixed(3)} of the promise`,
    `${(perMinute / policy.limit).toFixed(2)} of the rate`,
    `${excess.toFixed(0)} over`,
    `${((100 * noEffect) / settled).toFixed(0)} % of ${settled} give-backs without effect`,
  ]
  console.log(`  ${columns.join('  ')}${held ? '' : '  MISSED'}`)
}

console.log(`${MINUTES} minutes of calls that ask for ${DEMAND} times what the limit has in real units`)
for (const calls of WORKLOADS) {
  console.log(`\n${BUDGET.limit.toLocaleString('en')} a minute, ${calls.title}`)
  for (const contender of CONTENDERS) {
    for (const arrivals of /** @type {const} */ (['even', 'Poisson'])) await show(contender, calls, arrivals)
  }
}
for (const seconds of [20, 60]) {
  console.log(`\nLogs, calls of ${seconds} s`)
  const calls = { title: '', estimate: 10, least: 1, most: 4, seconds }
  for (const contender of LOGS) await show(contender, calls, 'Poisson')
}
process.exitCode = failed === 0 ? 0 : 1
