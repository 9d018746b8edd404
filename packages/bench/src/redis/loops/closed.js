import { quantiles } from './latencies.js'

/** @typedef {import('../../contender.js').Contender} Contender */

/**
 * @typedef {object} Load
 * @property {'closed'} [loop]
 * @property {number} callers Each asks again when it has been answered.
 * @property {number} keys 1 is one hot key; the callers go through more of them in turn.
 * @property {number} calls How many in all.
 * @property {number} [from] How many calls of the keys went before.
 * @property {boolean} [denialsToo] Count what is admitted, instead of taking a denial for a mistake.
 *
 * @typedef {object} Seen
 * @property {number} calls
 * @property {number} admitted
 * @property {number} perSecond
 * @property {number} p50 In milliseconds.
 * @property {number} p99
 * @property {number} cpuUs Of this process, microseconds a call.
 */

/** Leads through the keys in an order that no cache likes; a prime, so that each is met as often as the next. */
const STRIDE = 7919

/**
 * @param {Contender} contender
 * @param {Load} load
 * @returns {Promise<Seen>}
 */
export async function closedLoop({ call, allowed }, { callers, keys, calls, from = 0, denialsToo }) {
  /** @type {number[]} */
  const latencies = []
  let begun = 0
  let admitted = 0
  const cpu = process.cpuUsage()
  const start = performance.now()
  const keyOf = (/** @type {number} */ call) => (keys === 1 ? 'hot' : `user:${(call * STRIDE) % keys}`)
  const caller = async () => {
    while (begun < calls) {
      const sent = performance.now()
      if (allowed(await call(keyOf(from + begun++)))) admitted++
      latencies.push(performance.now() - sent)
    }
  }
  await Promise.all(Array.from({ length: callers }, caller))
  const took = performance.now() - start
  const { user, system } = process.cpuUsage(cpu)
  if (!denialsToo && admitted !== begun)
    throw new Error(`${admitted} of ${begun} calls were admitted, not all`)
  const perSecond = (begun / took) * 1000
  return { calls: begun, admitted, perSecond, cpuUs: (user + system) / begun, ...quantiles(latencies) }
}
