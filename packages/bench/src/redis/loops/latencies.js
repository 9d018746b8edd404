/**
 * Half, and all but the hundredth part, of the calls took no longer.
 * @param {ArrayLike<number>} latencies In milliseconds.
 */
export function quantiles(latencies) {
  const sorted = Float64Array.from(latencies).sort()
  const at = (/** @type {number} */ part) => sorted[Math.floor(sorted.length * part)] ?? NaN
  return { p50: at(0.5), p99: at(0.99) }
}
