import { type Algorithm, factory, POLICY, Policy, windowOf } from './contract/policy.js'
import type { PolicyFactory, PolicyOptions } from './contract/policy.js'
import { expectedButGot, PolicyError } from '../values/errors.js'
import { MOST_ENTRIES, type State } from './contract/state.js'

/*
 * Every admitted unit is kept with its instant, so the limit is exact in every span and not only on average. It costs 8 bytes
 * per unit. No decision walks the log: a cost fits once the entry `limit - cost` back from the newest has left the window.
 */

/** Largest limit of a log: it takes 800 kB per key; beyond that, another algorithm serves better. */
const LARGEST_LIMIT = 100_000

/**
 * A log of every admitted unit: at most `limit` in every span (t - window, t], exactly. A unit of the instant s stops counting
 * at exactly s + window.
 * @throws {PolicyError} when a number is not positive and whole, or limit is above 100,000.
 * @example
 * import { createLimiter, slidingLog } from '@sluice/core'
 * // Never more than 5 in any minute.
 * const logins = createLimiter({ policies: [slidingLog({ limit: 5, window: '1m' })] })
 * const { allowed } = await logins.consume('user:42')
 */
export const slidingLog: PolicyFactory<PolicyOptions> = /* @__PURE__ */ factory(
  'slidingLog',
  POLICY,
  (settings) => new Policy(algorithm, settings),
)

const algorithm: Algorithm = {
  name: 'sliding-log',
  ring: true,
  cells: () => 0,

  /**
   * Sliding log: returns the first instant from `from` on, in microseconds, at which `cost` units fit; Infinity for a cost above
   * the limit. `state.ring` has one entry a unit, the instant of its charge. The cost fits once at most `limit - cost` entries
   * count, so once the entry that many places behind the newest has left the window; a place without one has -Infinity.
   */
  earliest(state, policy, from, cost) {
    if (cost > policy.limit) return Infinity
    return Math.max(from, state.ring.at(policy.limit - cost) + policy.window)
  },

  /**
   * Sliding log: charges `cost` units at the instant `at`: drops the entries that have left the window, and adds one of `at` for
   * each unit. The units need not fit, as the real cost of a call may become known only after the call. But the log holds at most
   * twice the limit, so that its memory stays bounded. A negative cost removes the newest entries. Returns the units that took
   * effect.
   */
  admit(state, policy, at, cost) {
    if (cost < 0) return refund(state, policy, at, -cost)
    const live = newerThan(state, at - policy.window)
    const pushed = Math.min(cost, Math.max(0, 2 * policy.limit - live))
    state.ring.keep(live)
    state.ring.push(at, pushed)
    return pushed
  },

  /**
   * Sliding log: fills `view` for the instant `now` with the units left, which are the limit less the entries in the window
   * (`live`), and the instant at which the newest entry leaves it; `now` if there is none.
   */
  view(state, policy, now, view) {
    const live = newerThan(state, now - policy.window)
    view.remaining = policy.limit - live
    view.resetAt = live === 0 ? now : state.ring.at(0) + policy.window
  },

  /**
   * Sliding log: logs `cost` units at `now`, one entry each, if they fit, and fills `view` with the units left and the instant at
   * which the newest entry leaves the window. Returns `now` if they were logged, otherwise the instant at which they will fit:
   * when the entry `limit - cost` places behind the newest has left the window. Infinity for a cost above the limit. `live`
   * counts the entries in the window.
   */
  take(state, policy, now, cost, view) {
    const { ring } = state
    const live = newerThan(state, now - policy.window)
    if (live + cost <= policy.limit) {
      ring.keep(live)
      ring.push(now, cost)
      view.remaining = policy.limit - live - cost
      view.resetAt = now + policy.window
      return now
    }
    view.remaining = policy.limit - live
    view.resetAt = live === 0 ? now : ring.at(0) + policy.window
    return cost > policy.limit ? Infinity : ring.at(policy.limit - cost) + policy.window
  },

  /**
   * Sliding log: gives back up to `units` units of a charge: removes entries of exactly its instant, and returns how many.
   * Entries are counted from the newest on, so those of that instant lie at the places from `newer` to `last`. Only the newest
   * 1,000 entries of the key (MOST_ENTRIES) are reached, because all newer ones have to move into the gap.
   */
  release(state, policy, now, charge, units) {
    if (charge.at <= now - policy.window) return 0
    const newer = newerThan(state, charge.at)
    const last = Math.min(newerThan(state, charge.at - 1), MOST_ENTRIES)
    const given = Math.max(0, Math.min(units, last - newer))
    state.ring.remove(newer, given)
    return given
  },

  bounds: {
    most: ({ limit, window }, span) => limit * Math.ceil(span / window),
    reach: windowOf,
    scale: windowOf,
  },

  leasing: {
    /** Units that are served in (t - window, t] were booked in (t - window - ttl, t]. */
    book: (policy, ttlMs) => policy.with({ window: `${policy.windowMs + ttlMs}ms` }),
    end: () => Infinity,
  },

  /**
   * Refuses a sliding log with a limit above 100,000, which would take too much memory: 8 bytes for each unit of each key.
   * @throws {PolicyError} INVALID_LIMIT.
   */
  check({ limit }) {
    if (limit <= LARGEST_LIMIT) return
    const bound = `limit of a sliding log must be at most ${LARGEST_LIMIT} (use slidingWindow or calendarWindow beyond)`
    throw expectedButGot(PolicyError, 'INVALID_LIMIT', bound, limit)
  },
}

/**
 * Gives back the newest units of a key, up to `cost`, and returns how many. Entries later than `at` stay, as these are `booked`
 * for calls that wait for their turn; behind them, entries are removed as long as they are in the window that ends at `at`.
 */
function refund(state: State, policy: Policy, at: number, cost: number): number {
  const booked = newerThan(state, at)
  const given = Math.min(cost, newerThan(state, at - policy.window) - booked)
  state.ring.remove(booked, given)
  return given
}

/**
 * Returns the number of entries of the log that are later than `instant`. `ring.at(0)` is the newest entry. The search gallops
 * from the oldest on: between two calls few entries leave the window, so its steps double from one on until they meet an entry
 * that is later, and the places of the last step are searched by halves.
 */
function newerThan({ ring }: State, instant: number): number {
  let most = ring.size
  let newer = most - 1
  for (let step = 1; newer >= 0 && ring.at(newer) <= instant; step *= 2) {
    most = newer
    newer -= step
  }
  let least = Math.max(0, newer + 1)
  while (least < most) {
    const middle = (least + most) >>> 1
    if (ring.at(middle) > instant) least = middle + 1
    else most = middle
  }
  return least
}
