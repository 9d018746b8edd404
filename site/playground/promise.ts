import type { Policy } from '@sluice/core'

/** The most units in any span of a window, as docs/algorithms.md promises it. */
export function promiseOf({ algorithm, limit, capacity }: Policy): number {
  switch (algorithm.name) {
    case 'sliding-log':
    case 'sliding-window':
      return limit
    case 'fixed-window':
    case 'sliding-window-weighted':
      return 2 * limit
    default:
      return capacity + limit
  }
}

/** A part of the time, in milliseconds from the start; its end is not of it. */
export interface Span {
  readonly from: number
  readonly to: number
}

/** Units that are charged at instants, in their order. */
export interface Charges {
  readonly turns: ArrayLike<number>
  readonly kept: ArrayLike<number>
}

/** The most units of any span (t - window, t] that ends in each of `bins` equal parts of [from, to). */
export function spansIn(
  { turns, kept }: Charges,
  windowMs: number,
  { from, to }: Span,
  bins: number,
): Float64Array {
  const most = new Float64Array(bins)
  const width = (to - from) / bins
  let [first, next, count] = [0, 0, 0]
  // Times are exact to the microsecond, and a charge that is a window old has left.
  const leave = (now: number): void => {
    while (first < next && Math.round((now - turns[first]!) * 1000) >= windowMs * 1000)
      count -= kept[first++]!
  }
  for (let bin = 0; bin < bins; bin++) {
    const start = from + bin * width
    while (next < turns.length && turns[next]! <= start) count += kept[next++]!
    leave(start)
    most[bin] = count
    while (next < turns.length && turns[next]! < start + width) {
      count += kept[next]!
      leave(turns[next++]!)
      most[bin] = Math.max(most[bin]!, count)
    }
  }
  return most
}

export function mostInAnySpan(charges: Charges, windowMs: number): number {
  return spansIn(charges, windowMs, { from: 0, to: Number.MAX_SAFE_INTEGER }, 1)[0]!
}
