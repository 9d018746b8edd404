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

/** Charges in the order of their times. */
export interface Charges {
  readonly at: readonly number[]
  readonly units: readonly number[]
}

/** Calls `seen` at each charge with the units of the spans (at - window, at], its own included. */
export function eachSpan(
  { at, units }: Charges,
  windowMs: number,
  seen: (at: number, count: number) => void,
): void {
  let first = 0
  let count = 0
  for (const [i, time] of at.entries()) {
    count += units[i]!
    // To the microsecond, in which the library counts.
    while (Math.round((time - at[first]!) * 1000) >= windowMs * 1000) count -= units[first++]!
    // Of charges at one instant the last has all of them.
    if (at[i + 1] !== time) seen(time, count)
  }
}

export function mostInAnySpan(charges: Charges, windowMs: number): number {
  let most = 0
  eachSpan(charges, windowMs, (_, count) => (most = Math.max(most, count)))
  return most
}

/** The most units of a span that ends in each of `bins` equal parts of [from, to). */
export function spansIn(
  charges: Charges,
  windowMs: number,
  from: number,
  to: number,
  bins: number,
): Float64Array {
  const most = new Float64Array(bins)
  const width = (to - from) / bins
  const { at, units } = charges
  let [first, next, count] = [0, 0, 0]
  const leave = (now: number): void => {
    while (first < next && Math.round((now - at[first]!) * 1000) >= windowMs * 1000) count -= units[first++]!
  }
  for (let bin = 0; bin < bins; bin++) {
    const start = from + bin * width
    for (; next < at.length && at[next]! < start; next++) count += units[next]!
    leave(start)
    most[bin] = count
    for (; next < at.length && at[next]! < start + width;) {
      const now = at[next]!
      for (; next < at.length && at[next] === now; next++) count += units[next]!
      leave(now)
      most[bin] = Math.max(most[bin]!, count)
    }
  }
  return most
}
