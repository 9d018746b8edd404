import { randomFrom } from '@sluice/harness/figures'
import { quantiles } from './latencies.js'

/**
 * @typedef {object} OpenLoad
 * @property {'open'} loop
 * @property {number} keys
 * @property {number} calls How many in all.
 * @property {number} perSecond How many are due in a second.
 * @property {number} seed Of the moments at which they are due.
 */

/** A store takes at most a thousand calls at a time. Those that are due meanwhile wait, and their latency grows. */
const MOST_IN_FLIGHT = 900

/**
 * Calls begin when they are due, as those of callers who know nothing of each other (a Poisson process), whether others
 * have been answered or not. A call's latency counts from when it was due. It is looked at every millisecond what is.
 * @param {import('../../contender.js').Contender} contender
 * @param {OpenLoad} load
 */
export async function openLoop({ call, allowed }, { keys, calls, perSecond, seed }) {
  const due = arrivals(calls, perSecond, randomFrom(seed))
  const latencies = new Float64Array(calls)
  let answered = 0
  const start = performance.now()
  /** @param {number} i */
  const one = async (i) => {
    if (!allowed(await call(`user:${i % keys}`))) throw new Error(`call ${i} was not admitted`)
    latencies[i] = performance.now() - start - (due[i] ?? NaN)
    answered++
  }
  /** @type {Promise<void>[]} */
  const all = []
  while (all.length < calls) {
    const now = performance.now() - start
    while ((due[all.length] ?? Infinity) <= now && all.length - answered < MOST_IN_FLIGHT)
      all.push(one(all.length))
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
  await Promise.all(all)
  return quantiles(latencies)
}

/**
 * @param {number} calls
 * @param {number} perSecond
 * @param {() => number} random
 * @returns {Float64Array} in milliseconds from the start
 */
function arrivals(calls, perSecond, random) {
  let at = 0
  return Float64Array.from({ length: calls }, () => (at -= (Math.log(1 - random()) * 1000) / perSecond))
}
