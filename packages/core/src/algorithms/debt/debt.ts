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
  cells: () => 3,

  /**
   * The first instant from `from` on, in microseconds, at which the debt leaves room for `cost` more units; Infinity
   * for a cost above the capacity. Debts are in units x ticks: a unit adds `windowTicks`, and each tick drains
   * `limit`.
   */
  earliest(state, policy, from, cost) {
    if (cost > policy.capacity) return Infinity
    const maxDebt = (policy.capacity - cost) * policy.windowTicks
    if (debtAt(state, policy, from) <= maxDebt) return from
    return drainedFrom(state.get(SINCE), state.get(DEBT) - maxDebt, policy)
  },

  /**
   * Adds `cost` units to the debt that is left at `at`, or takes them off it if the cost is negative. The debt stays
   * between 0 and twice the capacity. Returns the units that took effect.
   */
  admit(state, policy, at, cost) {
    const owed = drain(state, policy, at)
    const cap = Math.max(owed, 2 * policy.capacity * policy.windowTicks)
    const newDebt = Math.max(0, Math.min(cap, owed + cost * policy.windowTicks))
    state.set(DEBT, newDebt)
    return Math.abs(newDebt - owed) / policy.windowTicks
  },

  /** Fills `view` for the instant `now`: the whole units that still fit, and when the debt has drained. */
  view(state, policy, now, view) {
    const owed = debtAt(state, policy, now)
    show(policy, owed, owed === 0 ? now : drainedFrom(state.get(SINCE), state.get(DEBT), policy), view)
  },

  /**
   * Charges `cost` at `now` if it fits, and fills `view`, in one pass over the state. Returns `now` if it was
   * charged, otherwise the instant at which the cost will fit: Infinity if never.
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
   * Gives units of one charge back, as far as they have not drained. Returns how many took effect. Compare the debt
   * with and without the charge: at first they differ by its cost. The difference shrinks only while the debt without
   * the charge is empty, and then by at most what the largest limit of the key (FASTEST) drains. So at least the cost
   * less what that limit drains since the charge is left, and that much may be given back.
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
   * For a key that is full again and begins anew: forgets that policies with larger limits have drained it before.
   */
  renew(state, policy) {
    state.set(FASTEST, policy.limit)
  },

  /** A debt has drained before its state expires, as the limit of the last write is at most FASTEST. */
  isValid(state, { tick }, latest, expiresAt) {
    const since = state.get(SINCE)
    return since <= latest && state.get(DEBT) * tick <= (expiresAt - since) * state.get(FASTEST)
  },

  leasing: {
    /**
     * Units that are served in [s, t] were taken from the store in [s - ttl, t]. In this longer span the rate admits
     * limit * ttl / window units more, so they are taken with a capacity smaller by that much.
     */
    book(policy, ttlMs) {
      const product = BigInt(policy.limit) * BigInt(ttlMs)
      const windowMs = BigInt(policy.windowMs)
      const keptBack = Number((product + windowMs - 1n) / windowMs)
      return keptBack < policy.capacity ? policy.with({ capacity: policy.capacity - keptBack }) : undefined
    },
    end: () => Infinity,
  },

  /** Checks that capacity x window leaves room for exact arithmetic. */
  check(policy, name) {
    const largest = Math.floor(LARGEST_PRODUCT / policy.windowTicks)
    if (policy.capacity <= largest) return
    const advice = `a smaller ${name}, a shorter window, or fixedWindow, which has no such bound`
    const bound = `${name} must be at most ${largest} for this window, got ${policy.capacity}`
    throw new PolicyError('CAPACITY_TOO_LARGE', `${bound}: use ${advice}`)
  },
} satisfies Omit<Algorithm, 'name'>

/** The debt, in units x ticks, that is left at `instant`. */
export function debtAt(state: State, policy: Policy, instant: number): number {
  return debtAfter(instant - state.get(SINCE), state.get(DEBT), policy)
}

/**
 * The rest of a debt after some microseconds; time that runs back drains nothing. A product above 2^53 may be
 * rounded, but is then larger than any debt.
 */
function debtAfter(elapsed: number, before: number, policy: Policy): number {
  if (before === 0 || elapsed <= 0) return before
  const ticks = policy.tick === 1 ? elapsed : Math.floor(elapsed / policy.tick)
  return Math.max(0, before - ticks * policy.limit)
}

/**
 * Writes to the state that the debt has drained until `at` under this policy's limit, all but the debt itself, which
 * the caller writes. Returns the debt that is left, in units x ticks.
 */
function drain(state: State, policy: Policy, at: number): number {
  const since = state.get(SINCE)
  const owed = debtAfter(at - since, state.get(DEBT), policy)
  state.set(SINCE, advanced(since, at, owed, policy))
  if (policy.limit > state.get(FASTEST)) state.set(FASTEST, policy.limit)
  return owed
}

/**
 * The instant as of which a debt counts after it was drained until `at`, where `owed` is left: the new value of SINCE. A tick
 * drains `policy.limit` from the debt, and only whole ticks drain. So SINCE moves by whole ticks, and the rest of the time counts
 * towards the next tick. If the debt is over, or would be within that tick, SINCE moves to `at`: the rest is idle time, which
 * must not drain what is charged later.
 */
function advanced(since: number, at: number, owed: number, policy: Policy): number {
  if (owed === 0) return at
  if (at <= since) return since
  return policy.tick === 1 || owed <= policy.limit ? at : at - ((at - since) % policy.tick)
}

/**
 * The instant, in microseconds, at which a debt of `owed` units x ticks has drained if it begins to drain at `since`.
 */
function drainedFrom(since: number, owed: number, policy: Policy): number {
  return since + Math.ceil(owed / policy.limit) * policy.tick
}

/**
 * Fills `view` for a debt of `owed` units x ticks, which has drained at `resetAt`: of the capacity, the whole units
 * that it leaves.
 */
function show(policy: Policy, owed: number, resetAt: number, view: View): void {
  view.remaining = Math.max(0, policy.capacity - Math.ceil(owed / policy.windowTicks))
  view.resetAt = resetAt
}
