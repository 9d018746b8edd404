import type { Model } from '../rule.js'

/**
 * Sliding log: at most `limit` units in every span (t-W, t]; an entry made at s is gone at exactly s+W. A refund
 * drops the newest entries at or before its instant, a release the entries of its charge's instant as long as that is
 * inside the window, and only those among the newest 1,000. A charge saturates at 2 x limit live entries and never lowers
 * what is there. Old entries need not be forgotten here: no question is asked before the last booked instant.
 */
export const model: Model<readonly Entry[]> = {
  refunds: 'newest until now',
  largestLimit: 100_000,
  multiplied: () => false,

  /**
   * The state that all writes to a key leave, counted one after the other: the entries of the log, each an instant and its units.
   * An admission adds an entry. A charge adds one of at most the units that are free below twice the limit. A refund drops units
   * of the newest entries, a release those of the instant of its charge, unless that has left the window.
   */
  recount(writes) {
    const entries: Entry[] = []
    for (const { kind, at, cost, charge, rule } of writes) {
      if (kind === 'refund') dropNewest(entries, at, cost)
      else if (kind === 'release') {
        if (charge!.at > at - rule.window) dropEntriesAt(entries, charge!.at, cost)
      } else if (kind === 'admit') entries.push({ at, units: cost })
      else {
        const free = 2n * rule.limit - live(entries, rule.window, at)
        if (free > 0n) entries.push({ at, units: cost < free ? cost : free })
      }
    }
    return entries
  },

  room: (entries, rule, instant) => rule.limit - live(entries, rule.window, instant),

  kept: (entries, rule, instant) => live(entries, rule.window, instant),

  // A closed span of n microseconds holds n + 1 instants; (t-W, t] holds W of them.
  bound: (rule, from, to) => rule.limit * ((to - from) / rule.window + 1n),

  leased: (options, ttl) => ({ ...options, window: options.window + ttl }),
}

interface Entry {
  readonly at: bigint
  readonly units: bigint
}

/**
 * The units of the entries that count at `instant`: those made less than `window` microseconds before it, or later (bookings).
 */
function live(entries: readonly Entry[], window: bigint, instant: bigint): bigint {
  let units = 0n
  for (const entry of entries) if (entry.at > instant - window) units += entry.units
  return units
}

/** Units at the end of a log, counted from the newest on, among which a release looks for those of its charge. */
const NEWEST = 1000n

/**
 * Drops up to `cost` units of the entries of exactly this instant, as far as they are among the newest 1,000 units of the log:
 * the product looks through no more of a log for a release.
 */
function dropEntriesAt(entries: Entry[], instant: bigint, cost: bigint): void {
  let newerUnits = 0n
  for (let i = entries.length - 1; i >= 0; i--) {
    const { at, units } = entries[i]!
    const withinBound = units < NEWEST - newerUnits ? units : NEWEST - newerUnits
    newerUnits += units
    if (at !== instant || withinBound <= 0n) continue
    const dropped = withinBound < cost ? withinBound : cost
    entries[i] = { at, units: units - dropped }
    cost -= dropped
  }
}

/**
 * Drops up to `cost` units of the entries, from the newest at or before `now` back to the oldest; later ones are bookings and
 * stay. An entry may be left with part of its units, or with 0.
 */
function dropNewest(entries: Entry[], now: bigint, cost: bigint): void {
  for (let i = entries.length - 1; i >= 0 && cost > 0n; i--) {
    const { at, units } = entries[i]!
    if (at > now) continue
    const dropped = units < cost ? units : cost
    entries[i] = { at, units: units - dropped }
    cost -= dropped
  }
}
