import { type Algorithm, factory, POLICY, Policy, windowOf } from './contract/policy.js'
import type { PolicyFactory, PolicyOptions } from './contract/policy.js'
import type { State } from './contract/state.js'

/*
 * One counter per window; windows are aligned to the Unix epoch. It is the cheapest algorithm and the most misleading one: around
 * a boundary, a span of one window may hold twice the limit.
 */

/** Start of the newest window that was booked, in microseconds, and the units booked in it. */
const START = 0
const COUNT = 1

/**
 * At most `limit` in each window [k * window, (k + 1) * window) counted from the Unix epoch, and so at most 2 x limit
 * in any span of one window.
 * @throws {PolicyError} when a number is not positive and whole.
 * @example
 * import { createLimiter, fixedWindow } from '@sluice/core'
 * // At most 1,000 a day, counted from midnight UTC.
 * const limiter = createLimiter({ policies: [fixedWindow({ limit: 1000, window: '1d' })] })
 * const { remaining } = await limiter.consume('user:42')
 */
export const fixedWindow: PolicyFactory<PolicyOptions> = /* @__PURE__ */ factory(
  'fixedWindow',
  POLICY,
  (settings) => new Policy(algorithm, settings),
)

const algorithm: Algorithm = {
  name: 'fixed-window',
  ring: false,
  hasWindows: true,
  cells: () => 2,

  /**
   * Fixed window: returns `from` if the window in which it lies has room for `cost` units, otherwise the start of the next
   * window, which begins empty; Infinity for a cost above the limit. Instants are in microseconds.
   */
  earliest(state, policy, from, cost) {
    if (cost > policy.limit) return Infinity
    if (countAt(state, policy, from) + cost <= policy.limit) return from
    return windowStart(policy, from) + policy.window
  },

  /**
   * Fixed window: counts `cost` units in the window of the instant `at`; a negative cost takes units out. The state keeps the
   * newest window alone, its START and its COUNT, so a refund now does nothing if a waiting call is booked in a later window
   * already. The units need not fit, as the real cost of a call may become known only after the call; but they raise the count to
   * at most twice the limit. A count above that, from a time of larger limits, stays. Returns the units that took effect.
   */
  admit(state, policy, at, cost) {
    const start = windowStart(policy, at)
    if (start < state.get(START)) return 0 // a refund behind a booking: its window is not kept any more
    const before = countAt(state, policy, at)
    const most = Math.max(before, 2 * policy.limit)
    const count = Math.max(0, Math.min(most, before + cost))
    state.set(START, start)
    state.set(COUNT, count)
    return Math.abs(count - before)
  },

  /**
   * Fixed window: fills `view` for the instant `now` with the units that its window has left, and as `resetAt` the end of the
   * counted window; `now` if nothing is counted.
   */
  view(state, policy, now, view) {
    const count = countAt(state, policy, now)
    view.remaining = policy.limit - count
    view.resetAt = count === 0 ? now : state.get(START) + policy.window
  },

  /**
   * Fixed window: counts `cost` units in the window of `now` if they fit, and fills `view` with the units left and the window's
   * end. Returns `now` if they were counted, otherwise the start of the next window, at which they will fit; Infinity for a cost
   * above the limit. START and COUNT are the newest window and its units; a window that is newer begins at 0.
   */
  take(state, policy, now, cost, view) {
    const { limit, window } = policy
    const start = windowStart(policy, now)
    const before = start > state.get(START) ? 0 : state.get(COUNT)
    const fits = before + cost <= limit
    const count = fits ? before + cost : before
    if (fits) {
      state.set(START, start)
      state.set(COUNT, count)
    }
    view.remaining = limit - count
    view.resetAt = count === 0 ? now : start + window
    if (fits) return now
    return cost > limit ? Infinity : start + window
  },

  /**
   * Fixed window: gives back up to `units` units of a charge, and returns how many took effect: 0 once the charge's window has
   * ended, or once the state counts a later one, as only the newest window (its START and COUNT) is kept.
   */
  release(state, policy, now, charge, units) {
    const start = state.get(START)
    if (windowStart(policy, charge.at) !== start || windowStart(policy, now) > start) return 0
    const given = Math.min(units, state.get(COUNT))
    state.set(COUNT, state.get(COUNT) - given)
    return given
  },

  /**
   * Whether calls can have left this state; false means that it is corrupt. START, the start of the counted window, must be a
   * multiple of the window's length and not after `latest`, the instant of the last write or booking.
   */
  isValid(state, { window }, latest) {
    const start = state.get(START)
    return start <= latest && start % window === 0
  },

  bounds: {
    // A span may begin with the last microsecond of a window.
    most: ({ limit, window }, span) => limit * (Math.ceil((span - 1) / window) + 1),
    reach: windowOf,
    scale: windowOf,
  },

  /** Units that are booked in a window are served in it. */
  leasing: {
    book: (policy) => policy,
    end: (policy, now) => windowStart(policy, now) + policy.window,
  },
}

/** The units counted in the window of an instant; 0 if that window is newer than the counted one, which begins at START. */
function countAt(state: State, policy: Policy, instant: number): number {
  return windowStart(policy, instant) > state.get(START) ? 0 : state.get(COUNT)
}

/** The instant, in microseconds, at which the window of `instant` began: one begins at each multiple of its length since 1970. */
function windowStart(policy: Policy, instant: number): number {
  return Math.floor(instant / policy.window) * policy.window
}
