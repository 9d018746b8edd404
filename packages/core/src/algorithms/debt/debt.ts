import { type Algorithm, LARGEST_PRODUCT, type Policy, type View } from '../contract/policy.js'
import type { State } from '../contract/state.js'
import { PolicyError } from '../../values/errors.js'

/*
 * The generic cell rate algorithm, as a debt that drains; twin of lua/gcra.lua. ITU-T I.371 keeps TAT, the theoretical arrival
 * time, and admits a cost c at t when max(TAT, t) + cT - t <= burst * T, with T = window / limit. T is seldom whole, so the
 * state is TAT - t multiplied by the limit: debt = (TAT - t) * limit, in units x ticks. A unit adds `windowTicks` to the
 * debt, each tick drains `limit`, and every number stays an exact integer.
 *
 * Token bucket and leaky bucket are the same debt: it is the missing tokens of the one and the level of the other.
 */

/** The cells: the debt, in units x ticks; the instant as of which it is counted; the largest limit that has drained it. */
export const DEBT = 0
export const SINCE = 1
export const FASTEST = 2

/** The algorithm of gcra, token bucket and leaky bucket, to which each adds its name. */
export const debt = {
  ring: false,
  drains: true,
  cells: () => 3,

  /**
   * Returns the first instant from `from` on, in microseconds, at which the debt leaves room for `cost` more units; Infinity
   * for a cost above the capacity. Debts are in units x ticks: a unit adds `windowTicks`, and each tick drains `limit`. So
   * the cost fits once the debt is at most `maxDebt`, which is what the capacity leaves beside the cost. The cell DEBT holds
   * the debt as it was at the instant in the cell SINCE; what is above `maxDebt` has to drain from there.
   */
  earliest(state, policy, from, cost) {
    if (cost > policy.capacity) return Infinity
    const maxDebt = (policy.capacity - cost) * policy.windowTicks
    if (debtAt(state, policy, from) <= maxDebt) return from
    return drainedFrom(state.get(SINCE), state.get(DEBT) - maxDebt, policy)
  },

  /**
   * Charges `cost` units at the instant `at`: adds them to the debt (units x ticks, where one unit weighs `windowTicks`) that
   * has not drained by then. A negative cost gives units back. A debt never falls below 0, and a charge that was not checked
   * first raises it to at most twice the capacity; a debt that is above that already, as the capacity was larger before,
   * stays. Returns the units by which the debt changed, possibly a fraction.
   */
  admit(state, policy, at, cost) {
    const owed = drain(state, policy, at)
    const cap = Math.max(owed, 2 * policy.capacity * policy.windowTicks)
    const newDebt = Math.max(0, Math.min(cap, owed + cost * policy.windowTicks))
    state.set(DEBT, newDebt)
    return Math.abs(newDebt - owed) / policy.windowTicks
  },

  /**
   * Fills `view` for the instant `now`: `remaining`, the whole units that still fit beside the debt, and `resetAt`, the
   * instant at which the debt has drained, which is `now` if nothing is owed.
   */
  view(state, policy, now, view) {
    const owed = debtAt(state, policy, now)
    show(policy, owed, owed === 0 ? now : drainedFrom(state.get(SINCE), state.get(DEBT), policy), view)
  },

  /**
   * Charges `cost` units at `now` if they fit, and fills `view` with the units that remain and the instant at which all will
   * be back. Returns `now` if it was charged, otherwise the instant at which the cost will fit: Infinity if never. Debts are in
   * units x ticks, where one unit weighs `windowTicks`. The cells hold the debt, the instant SINCE as of which it is
   * counted, and in FASTEST the largest limit that has ever drained it, which `release` needs.
   */
  take(state, policy, now, cost, view) {
    const { cells, base } = state // each cell is read once: this is the path of nearly every call
    const since = cells[base + SINCE]!
    const before = cells[base + DEBT]!
    const owed = debtAfter(now - since, before, policy)
    const maxDebt = (policy.capacity - cost) * policy.windowTicks
    if (owed > maxDebt) {
      show(policy, owed, owed === 0 ? now : drainedFrom(since, before, policy), view)
      return cost > policy.capacity ? Infinity : drainedFrom(since, before - maxDebt, policy)
    }
    const at = advanced(since, now, owed, policy)
    const newDebt = owed + cost * policy.windowTicks
    cells[base + SINCE] = at
    cells[base + DEBT] = newDebt
    if (policy.limit > cells[base + FASTEST]!) cells[base + FASTEST] = policy.limit
    show(policy, newDebt, drainedFrom(at, newDebt, policy), view)
    return now
  },

  /**
   * Gives up to `units` units of one charge back at `now`, as far as they have not drained. Returns how many took effect. What
   * has drained of a single charge is not recorded, so the most that can have drained is assumed: FASTEST, the largest limit
   * that the key ever had, for each tick since the charge. The charge's cost less that (`left`, in units x ticks) certainly
   * still counts, and no more than the whole debt (`owed`) is given back.
   */
  release(state, policy, now, charge, units) {
    const owed = drain(state, policy, now)
    const drained = Math.ceil((now - charge.at) / policy.tick) * state.get(FASTEST)
    const left = charge.cost * policy.windowTicks - drained
    const given = Math.max(0, Math.min(units * policy.windowTicks, left, owed))
    state.set(DEBT, owed - given)
    return given / policy.windowTicks
  },

  /**
   * Prepares the state of a key whose allowance is full again for its next charge. FASTEST, the largest limit that has drained
   * the debt, becomes this policy's: larger limits of before concern no charge that is still owed.
   */
  renew(state, policy) {
    state.set(FASTEST, policy.limit)
  },

  /**
   * Whether calls can have left this state; false means that it is corrupt. Its instant SINCE must not be after `latest`, the last
   * write or booking, and its debt (units x ticks, of `tick` microseconds each) must have drained when the state expires: stores keep
   * a state until it is full again under the limit of the last write, and FASTEST, the largest limit of the key, is at least that.
   */
  isValid(state, { tick }, latest, expiresAt) {
    const since = state.get(SINCE)
    return since <= latest && state.get(DEBT) * tick <= (expiresAt - since) * state.get(FASTEST)
  },

  bounds: {
    most: ({ limit, capacity, window }, span) => capacity + Math.floor((limit * (span - 1)) / window),
    // One tick more, as time is counted in whole ticks.
    reach: (policy) => Math.ceil(drainingTime(policy)) + policy.tick,
    scale: drainingTime,
  },

  leasing: {
    /**
     * Returns the policy under which a lease is taken: units charged in the store now and served from memory within `ttlMs`
     * milliseconds. Units served in a span [s, t] were charged in [s - ttl, t], a longer span, in which the rate admits
     * limit * ttl / window units more. So the capacity is smaller by that much, rounded up; undefined if nothing is left of it.
     */
    book(policy, ttlMs) {
      const product = BigInt(policy.limit) * BigInt(ttlMs)
      const windowMs = BigInt(policy.windowMs)
      const keptBack = Number((product + windowMs - 1n) / windowMs)
      return keptBack < policy.capacity ? policy.with({ capacity: policy.capacity - keptBack }) : undefined
    },
    end: () => Infinity,
  },

  /**
   * Refuses a policy whose debts would not be exact: a full one is capacity x window, in units x ticks, and twice that must
   * not exceed 2^53. `name` is the user's option that set the capacity, for the message.
   * @throws {PolicyError} CAPACITY_TOO_LARGE.
   */
  check(policy, name) {
    const largest = Math.floor(LARGEST_PRODUCT / policy.windowTicks)
    if (policy.capacity <= largest) return
    const advice = `a smaller ${name}, a shorter window, or fixedWindow or calendarWindow, which have no such bound`
    const bound = `${name} must be at most ${largest} for this window, got ${policy.capacity}`
    throw new PolicyError('CAPACITY_TOO_LARGE', `${bound}: use ${advice}`)
  },
} satisfies Omit<Algorithm, 'name'>

/** The time in which a debt of the whole capacity drains. */
function drainingTime({ limit, capacity, window }: Policy): number {
  return limit > 0 ? (capacity * window) / limit : window
}

/** The debt, in units x ticks, that is left at `instant`. */
export function debtAt(state: State, policy: Policy, instant: number): number {
  return debtAfter(instant - state.get(SINCE), state.get(DEBT), policy)
}

/**
 * Returns what is left of a debt (`before`) after `elapsed` microseconds. A debt is in units x ticks: one unit adds `windowTicks` to it,
 * and each whole tick, which is `policy.tick` microseconds, drains `limit` of it. Time that runs back drains nothing. A product above
 * 2^53 may be rounded, but is then larger than any debt.
 */
function debtAfter(elapsed: number, before: number, policy: Policy): number {
  if (before === 0 || elapsed <= 0) return before
  const ticks = policy.tick === 1 ? elapsed : Math.floor(elapsed / policy.tick)
  return Math.max(0, before - ticks * policy.limit)
}

/**
 * Prepares a write at the instant `at`. Returns the debt that is left then, in units x ticks (a unit adds `windowTicks` to it, a tick
 * drains `limit`), for the caller to change and to write. Moves SINCE, the instant as of which the debt counts, and raises FASTEST,
 * the largest limit that has drained it, to this policy's limit.
 */
function drain(state: State, policy: Policy, at: number): number {
  const since = state.get(SINCE)
  const owed = debtAfter(at - since, state.get(DEBT), policy)
  state.set(SINCE, advanced(since, at, owed, policy))
  if (policy.limit > state.get(FASTEST)) state.set(FASTEST, policy.limit)
  return owed
}

/**
 * Returns the new value of SINCE, the instant as of which a debt counts, after the debt was drained until `at` and `owed` is left. A
 * tick drains `policy.limit`, and only whole ticks drain. So SINCE moves by whole ticks, and the rest of the time counts towards the
 * next tick. If the debt is over, or would be within that tick, SINCE moves to `at`: the rest is idle time, which must not drain what
 * is charged later.
 */
function advanced(since: number, at: number, owed: number, policy: Policy): number {
  if (owed === 0) return at
  if (at <= since) return since
  const { tick } = policy
  return tick === 1 || owed <= policy.limit ? at : since + Math.floor((at - since) / tick) * tick
}

/** Returns the instant, in microseconds, at which a debt of `owed` units x ticks has drained if it begins to drain at `since`. */
function drainedFrom(since: number, owed: number, policy: Policy): number {
  return since + Math.ceil(owed / policy.limit) * policy.tick
}

/**
 * Fills `view` for a debt of `owed` units x ticks, which will have drained at the instant `resetAt`. One unit weighs `windowTicks`. A
 * unit that is owed in part is not available, so the debt is rounded up. A debt above the capacity leaves fewer than 0 units.
 */
function show(policy: Policy, owed: number, resetAt: number, view: View): void {
  view.remaining = policy.capacity - Math.ceil(owed / policy.windowTicks)
  view.resetAt = resetAt
}
