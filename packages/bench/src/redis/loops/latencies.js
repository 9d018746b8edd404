import { quantile } from '@sluice/harness/figures'

/**
 * Half, and all but the hundredth part, of the calls took no longer.
 * @param {ArrayLike<number>} latencies In milliseconds.
 */
export function quantiles(latencies) {
  return { p50: quantile(latencies, 0.5), p99: quantile(latencies, 0.99) }
}
