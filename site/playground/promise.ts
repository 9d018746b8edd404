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

/** Units that are charged at an instant. */
export interface Charge {
  readonly turn: number
  readonly kept: number
}

/** The most units, of charges in order, of any span (t - window, t] that ends in each of `bins` equal parts of [from, to). */
export function spansIn(
  charges: readonly Charge[],
  windowMs: number,
  { from, to }: Span,
  bins: number,
): Float64Array {
  const most = new Float64Array(bins)
  const width = (to - from) / bins
  let [first, next, count] = [0, 0, 0]
  const turnOf = (i: number): number => charges[i]?.turn ?? Infinity
  // Of charges at one instant the last has all of them, and one that is a window old has none, to the microsecond.
  const goOn = (end: number): void => {
    const now = Math.min(turnOf(next), end)
    for (; turnOf(next) === now; next++) count += charges[next]!.kept
    while (first < next && Math.round((now - turnOf(first)) * 1000) >= windowMs * 1000)
      count -= charges[first++]!.kept
  }
  for (let bin = 0; bin < bins; bin++) {
    const start = from + bin * width
    while (turnOf(next) < start) goOn(start)
    goOn(start)
    most[bin] = count
    while (turnOf(next) < start + width) {
      goOn(start + width)
      most[bin] = Math.max(most[bin]!, count)
    }
  }
  return most
}

export function mostInAnySpan(charges: readonly Charge[], windowMs: number): number {
  return spansIn(charges, windowMs, { from: 0, to: Number.MAX_SAFE_INTEGER }, 1)[0]!
}
