import type { Model } from '../rule.js'

/**
 * Fixed window: at most `limit` units in each window [kW, (k+1)W), k counted from the Unix epoch. Only the newest booked
 * window is remembered: a refund that arrives in an earlier one has no effect, one in a later one finds nothing
 * left. A release takes units out of its own window while that is the newest and not over. A charge saturates at 2 x limit
 * in its window and never lowers what is there.
 */
export const model: Model<Count> = {
  refunds: 'newest until now',
  multiplied: () => false,

  /**
   * The state that all writes to a key leave, counted one after the other: the number of the newest window, from the Unix epoch
   * on (-1 before any), and the units in it. A write to a later window begins with 0 units there. A release counts only if the
   * window of its charge is the newest and the release does not come after it, a refund only if it comes in the newest window.
   */
  recount(writes) {
    let newest: Count = { window: -1n, units: 0n }
    for (const { kind, at, cost, charge, rule } of writes) {
      const window = at / rule.window
      if (kind === 'release') {
        const isOwn = charge!.at / rule.window === newest.window && window <= newest.window
        if (isOwn) newest = { ...newest, units: newest.units > cost ? newest.units - cost : 0n }
        continue
      }
      if (kind === 'refund') {
        if (window === newest.window)
          newest = { window, units: newest.units > cost ? newest.units - cost : 0n }
        continue
      }
      const before = window === newest.window ? newest.units : 0n
      newest = { window, units: kind === 'charge' ? charged(before, cost, 2n * rule.limit) : before + cost }
    }
    return newest
  },

  room: (newest, rule, instant) => rule.limit - (instant / rule.window === newest.window ? newest.units : 0n),

  kept: (newest, rule, instant) => (instant / rule.window > newest.window ? 0n : newest.units),

  bound: (rule, from, to) => rule.limit * (to / rule.window - from / rule.window + 1n),

  leased: (options) => options,
}

interface Count {
  readonly window: bigint
  readonly units: bigint
}

/**
 * The units in a window after a charge that is made whether it fits or not: `before + cost`, but no more than `most`, the limit; and
 * `before`, where that is more already, as the limit was larger when these units were charged.
 */
function charged(before: bigint, cost: bigint, most: bigint): bigint {
  const after = before + cost < most ? before + cost : most
  return after > before ? after : before
}
