// A fleet with leases under skewed traffic, in simulated time: what was served over the limit, booked and not used, and
// how evenly processes were served. npm run bench -- leases [PROCESSES SECONDS]
import { createLimiter, gcra, memoryStore, slidingLog } from '@sluice/core'
import { randomFrom } from '@sluice/harness/figures'
import { remote, Timeline } from './network.js'

/** @import { Decision, LeaseOptions, Policy } from '@sluice/core' */

const PROCESSES = Number(process.argv[2] ?? 1000)
const SECONDS = Number(process.argv[3] ?? 2)
const RATE = 200_000
const KEYS = 100
/** The share of the key of rank n is proportional to 1 / n ** SKEW. */
const SKEW = 1.1
const WINDOW = 1_000_000
/** One way to the store, in microseconds: from, and up to as much more. */
const DELAY = 150

/**
 * @template T
 * @param {ArrayLike<T>} list
 * @param {number} i
 */
const of = (list, i) => /** @type {T} */ (list[i])

/** Ranks 0 to KEYS - 1 with Zipf's shares. */
function zipf() {
  /** @type {number[]} */
  const sums = []
  let sum = 0
  for (let rank = 1; rank <= KEYS; rank++) sums.push((sum += rank ** -SKEW))
  return (/** @type {number} */ draw) => {
    let [least, most] = [0, KEYS - 1]
    while (least < most) {
      const middle = (least + most) >> 1
      if (/** @type {number} */ (sums[middle]) < draw * sum) least = middle + 1
      else most = middle
    }
    return least
  }
}

/**
 * @param {readonly Policy[]} policies
 * @param {LeaseOptions} [leases]
 */
async function simulate(policies, leases) {
  const random = randomFrom(7)
  const rankOf = zipf()
  const timeline = new Timeline()
  const server = memoryStore({ clock: () => timeline.now })
  const count = { calls: 0, booked: /** @type {Map<string, number>} */ (new Map()) }
  const delay = () => DELAY + random() * DELAY
  const limiters = Array.from({ length: PROCESSES }, () => {
    const store = remote(server, timeline, delay, count)
    return createLimiter({
      name: 'fleet',
      policies,
      store,
      deadline: '1m',
      onStoreError: 'throw',
      ...(leases && { leases }),
    })
  })
  /** Per key: when calls were served, how many were made, and how many each process made and was served. */
  const keys = Array.from({ length: KEYS }, () => ({
    /** @type {number[]} */ servedAt: [],
    calls: 0,
    made: new Uint32Array(PROCESSES),
    served: new Uint32Array(PROCESSES),
  }))
  const end = timeline.now + SECONDS * 1e6
  let arrival = timeline.now
  let total = 0
  while (arrival < end || timeline.next < Infinity) {
    if (timeline.next <= arrival || arrival >= end) {
      timeline.step()
      await new Promise(setImmediate)
      continue
    }
    timeline.now = arrival
    const member = Math.floor(random() * PROCESSES)
    const rank = rankOf(random())
    const key = of(keys, rank)
    key.calls++
    key.made[member] = of(key.made, member) + 1
    total++
    const told = (/** @type {Decision} */ { allowed }) => {
      if (!allowed) return
      key.servedAt.push(timeline.now)
      key.served[member] = of(key.served, member) + 1
    }
    const decision = of(limiters, member).decide(`key ${rank}`)
    if (!('allowed' in decision)) void decision.then(told)
    else told(decision)
    arrival += (-Math.log(1 - random()) * 1e6) / RATE
  }
  await Promise.all(limiters.map((limiter) => limiter.close()))
  await server.close()
  return { keys, total, count }
}

/**
 * Calls that were served too much: beyond the limit in any window, or beyond what a bucket would hold.
 * @param {Policy} policy
 * @param {number[]} servedAt
 */
function overLimit({ algorithm, limit, capacity }, servedAt) {
  if (algorithm.ring)
    return servedAt.filter((at, i) => at - (servedAt[i - limit] ?? -Infinity) < WINDOW).length
  let [level, last, over] = [capacity, servedAt[0] ?? 0, 0]
  for (const at of servedAt) {
    level = Math.min(capacity, level + (limit * (at - last)) / WINDOW) - 1
    last = at
    if (level < -1e-6) over++
  }
  return over
}

/**
 * How evenly processes were served what they asked for: 1 for all the same share, 1 / n where one got all (Jain).
 * @param {{ made: Uint32Array, served: Uint32Array }} key
 */
function fairness({ made, served }) {
  const shares = [...served].map((n, i) => n / of(made, i)).filter((share) => !Number.isNaN(share))
  const sum = shares.reduce((a, b) => a + b, 0)
  return sum ** 2 / (shares.length * shares.reduce((a, b) => a + b * b, 0))
}

/** @type {readonly (readonly [string, Policy])[]} */
const policies = [
  ['gcra, 10,000/s, burst 20,000', gcra({ limit: 10_000, window: '1s', burst: 20_000 })],
  ['sliding log, 10,000 in 1 s', slidingLog({ limit: 10_000, window: '1s' })],
]
/** @type {readonly (LeaseOptions | undefined)[]} */
const leasings = [undefined, { ttl: '100ms', size: 100 }, { ttl: '1s', size: 100 }]

const number = (/** @type {number} */ n, digits = 0) =>
  n.toLocaleString('en', { maximumFractionDigits: digits })
console.log(
  `${number(PROCESSES)} processes, ${number(RATE)} calls/s, ${KEYS} keys (Zipf ${SKEW}), ${SECONDS} s of simulated time`,
)
let over = 0
for (const [title, policy] of policies) {
  for (const leases of leasings) {
    const { keys, total, count } = await simulate([policy], leases)
    console.log(`\n${title}, ${leases ? `leases of ${leases.ttl}, size ${leases.size}` : 'no leases'}`)
    console.log(`  calls to the store: ${number((100 * count.calls) / total, 1)} % of ${number(total)} calls`)
    // Without leases a limit holds at the moments of the store, not at those at which callers hear of it.
    if (leases) {
      const all = keys.reduce((sum, { servedAt }) => sum + overLimit(policy, servedAt), 0)
      over += all
      console.log(`  served over the limit, all keys: ${all}`)
    }
    for (const rank of [0, 1, 9]) {
      const key = of(keys, rank)
      const booked = count.booked.get(`key ${rank}`) ?? 0
      const unused = 1 - key.servedAt.length / booked
      console.log(
        `  key ${rank + 1}: ${number(key.calls / SECONDS)} calls/s, ${number(key.servedAt.length / SECONDS)} served/s, ` +
          `booked and unused ${number(100 * unused, 1)} %, fairness ${number(fairness(key), 3)}`,
      )
    }
  }
}
process.exitCode = over === 0 ? 0 : 1
