/** Redis tells the time in whole microseconds: a moment may lie that much before what it says, another one after. */
const CLOCK_US = 2

/**
 * The most that was served in a span, beyond what is promised for it; 0 or less where the promise was kept.
 * @typedef {(servedAt: Float64Array, limit: number, windowUs: number) => number} Excess
 */

/** Of a span of s: limit + limit * s / window. A bucket that is as full as it may be tells it for all of them. @type {Excess} */
function ofBucket(servedAt, limit, windowUs) {
  let level = limit
  let last = servedAt[0] ?? 0
  let lowest = limit
  for (const at of servedAt) {
    level = Math.min(limit, level + (limit * (at - last)) / windowUs) - 1
    lowest = Math.min(lowest, level)
    last = at
  }
  return -lowest - (limit * CLOCK_US) / windowUs
}

/** Of a span shorter than the window: the limit. @type {Excess} */
function ofWindow(servedAt, limit, windowUs) {
  let first = 0
  let most = 0
  servedAt.forEach((at, i) => {
    while (at - (servedAt[first] ?? NaN) >= windowUs - CLOCK_US) first++
    most = Math.max(most, i - first + 1)
  })
  return most - limit
}

export const excess = { gcra: ofBucket, slidingLog: ofWindow }
