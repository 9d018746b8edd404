/** A part of the time, in milliseconds from the start; its end is not of it. */
export interface Span {
  readonly from: number
  readonly to: number
}

/** A charge: the turn of its call, and the units of it that are kept. */
export type Charge = { readonly turn: number; readonly kept: number }

/** The most units of any span (t - window, t] that ends in each of `bins` equal parts of [from, to). */
export function spansIn(charges: readonly Charge[], windowMs: number, { from, to }: Span, bins: number) {
  const most = new Float64Array(bins)
  const width = (to - from) / bins
  let [first, next, count] = [0, 0, 0]
  // Times are exact to the microsecond, and a charge that is a window old has left.
  const leave = (now: number): void => {
    while (first < next && Math.round((now - charges[first]!.turn) * 1000) >= windowMs * 1000)
      count -= charges[first++]!.kept
  }
  for (let bin = 0; bin < bins; bin++) {
    const start = from + bin * width
    while (next < charges.length && charges[next]!.turn <= start) count += charges[next++]!.kept
    leave(start)
    most[bin] = count
    while (next < charges.length && charges[next]!.turn < start + width) {
      count += charges[next]!.kept
      leave(charges[next++]!.turn)
      most[bin] = Math.max(most[bin]!, count)
    }
  }
  return most
}

export function mostInAnySpan(charges: readonly Charge[], windowMs: number): number {
  return spansIn(charges, windowMs, { from: 0, to: Number.MAX_SAFE_INTEGER }, 1)[0]!
}
