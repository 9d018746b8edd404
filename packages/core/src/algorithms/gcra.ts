import {
  type Algorithm,
  type Charge,
  LARGEST_PRODUCT,
  type Leasing,
  noEarlierEnd,
  Policy,
  type PolicyOptions,
  type View,
} from './contract/policy.js'
import { checkPolicyOptions } from './contract/replaced-options.js'
import { expected, PolicyError } from '../values/errors.js'
import type { State } from './contract/state.js'
import { holds } from './debt/holds.js'
import { AT, DEBT, FASTEST } from './debt/layout.js'
import { withSlots } from './debt/with-slots.js'

/*
 * The generic cell rate algorithm, as a debt that drains. ITU-T I.371 keeps TAT, the theoretical arrival time, and
 * admits a cost c at t when max(TAT, t) + cT - t <= burst * T, with T = window / limit. T is seldom whole, so the
 * state is TAT - t multiplied by the limit: debt = (TAT - t) * limit, in units x ticks. A unit adds `windowTicks` to the
 * debt, each tick drains `limit`, and every number stays an exact integer.
 *
 * Token bucket and leaky bucket use these functions: the debt is the missing tokens of the one and the level of the other.
 */

export interface DebtOptions extends PolicyOptions {
  /**
   * Number of slots, 4 to 64, that record the charges of the last two windows, so that units can be given back long after
   * they were charged. A slot takes 8 bytes per key.
   * @default none: units that have drained since their charge are not given back
   */
  readonly slots?: number
}

export interface GcraOptions extends DebtOptions {
  /**
   * Most units at once, counting the first. 1 spreads calls evenly.
   * @default limit
   */
  readonly burst?: number
}

/**
 * Admits calls at an even rate of limit/window, up to `burst` of them at once. Any span of length s admits at most
 * burst + limit * s / window.
 * @throws {PolicyError} for an option that is not valid, or if burst x window exceeds 2^52, with the window in microseconds, or
 * in milliseconds if it is longer than an hour.
 * @example
 * import { createLimiter, gcra } from '@sluice/core'
 * // 100 a minute: up to 10 at once, then one each 600 ms.
 * const limiter = createLimiter({ policies: [gcra({ limit: 100, window: '1m', burst: 10 })] })
 * const { allowed } = await limiter.consume('user:42')
 */
export function gcra(options: GcraOptions): Policy {
  checkPolicyOptions(options, { burst: true, slots: true })
  return debtPolicy(algorithm, options, 'burst', options.burst)
}

export function earliest(state: State, policy: Policy, from: number, cost: number): number {
  if (cost > policy.capacity) return Infinity
  const maxDebt = (policy.capacity - cost) * policy.windowTicks
  if (debtAt(state, policy, from) <= maxDebt) return from
  return drainedFrom(state.get(AT), state.get(DEBT) - maxDebt, policy)
}

export function admit(state: State, policy: Policy, at: number, cost: number): number {
  const debt = drain(state, policy, at)
  const cap = Math.max(debt, 2 * policy.capacity * policy.windowTicks)
  const newDebt = Math.max(0, Math.min(cap, debt + cost * policy.windowTicks))
  state.set(DEBT, newDebt)
  return Math.abs(newDebt - debt) / policy.windowTicks
}

export function view(state: State, policy: Policy, now: number, view: View): void {
  const debt = debtAt(state, policy, now)
  show(policy, debt, debt === 0 ? now : drainedFrom(state.get(AT), state.get(DEBT), policy), view)
}

export function take(state: State, policy: Policy, now: number, cost: number, view: View): number {
  const { cells, base } = state // each cell is read once: this is the path of nearly every call
  const since = cells[base + AT]!
  const before = cells[base + DEBT]!
  const debt = debtAfter(now - since, before, policy)
  const maxDebt = (policy.capacity - cost) * policy.windowTicks
  if (debt > maxDebt) {
    show(policy, debt, debt === 0 ? now : drainedFrom(since, before, policy), view)
    return cost > policy.capacity ? Infinity : drainedFrom(since, before - maxDebt, policy)
  }
  const at = advanced(since, now, debt, policy)
  const newDebt = debt + cost * policy.windowTicks
  cells[base + AT] = at
  cells[base + DEBT] = newDebt
  if (policy.limit > cells[base + FASTEST]!) cells[base + FASTEST] = policy.limit
  show(policy, newDebt, drainedFrom(at, newDebt, policy), view)
  return now
}

/**
 * Gives back only units that have not drained. Compare the debt with and without the charge: at first they differ by its cost.
 * The difference shrinks only while the debt without the charge is empty, and by at most what FASTEST drains. So at least the
 * cost less what FASTEST drains since the charge is left, and that much may be given back.
 */
export function release(state: State, policy: Policy, now: number, charge: Charge, units: number): number {
  const debt = drain(state, policy, now)
  const drained = Math.ceil((now - charge.at) / policy.tick) * state.get(FASTEST)
  const left = charge.cost * policy.windowTicks - drained
  const given = Math.max(0, Math.min(units * policy.windowTicks, left, debt))
  state.set(DEBT, debt - given)
  return given / policy.windowTicks
}

/** Drains the debt until `at` under this policy's limit. Returns the debt that is left; the caller writes DEBT. */
function drain(state: State, policy: Policy, at: number): number {
  const since = state.get(AT)
  const debt = debtAfter(at - since, state.get(DEBT), policy)
  state.set(AT, advanced(since, at, debt, policy))
  if (policy.limit > state.get(FASTEST)) state.set(FASTEST, policy.limit)
  return debt
}

/**
 * The instant that a state of `since` moves to when it is written at `at`, where `debt` is left. It moves by whole ticks, so
 * that the rest of a tick drains later, but to `at` if the debt ends inside that tick: otherwise the idle time after the end
 * would drain the next charge.
 */
function advanced(since: number, at: number, debt: number, policy: Policy): number {
  if (debt === 0) return at
  if (at <= since) return since
  return policy.tick === 1 || debt <= policy.limit ? at : at - ((at - since) % policy.tick)
}

/** The instant at which `debt` has drained from `since` on. */
function drainedFrom(since: number, debt: number, policy: Policy): number {
  return since + Math.ceil(debt / policy.limit) * policy.tick
}

/** Fills `view` with what callers see while `debt` is left, which has drained at `resetAt`. */
function show(policy: Policy, debt: number, resetAt: number, view: View): void {
  view.remaining = Math.max(0, policy.capacity - Math.ceil(debt / policy.windowTicks))
  view.resetAt = resetAt
}

/** The debt that is left at `instant`. */
function debtAt(state: State, policy: Policy, instant: number): number {
  return debtAfter(instant - state.get(AT), state.get(DEBT), policy)
}

/** What is left of `debt` after some microseconds. A product above 2^53 may be rounded, but is then larger than any debt. */
function debtAfter(elapsed: number, debt: number, policy: Policy): number {
  if (debt === 0 || elapsed <= 0) return debt
  const ticks = policy.tick === 1 ? elapsed : Math.floor(elapsed / policy.tick)
  return Math.max(0, debt - ticks * policy.limit)
}

/**
 * Units that are served in [s, t] were taken from the store in [s - ttl, t]. In this longer span the rate admits
 * limit * ttl / window units more, so they are taken with a capacity smaller by that much.
 */
export const leasing: Leasing = {
  book(policy, ttlMs) {
    const product = BigInt(policy.limit) * BigInt(ttlMs)
    const windowMs = BigInt(policy.windowMs)
    const keptBack = Number((product + windowMs - 1n) / windowMs)
    return keptBack < policy.capacity ? policy.with({ capacity: policy.capacity - keptBack }) : undefined
  },
  end: noEarlierEnd,
}

/**
 * A policy of gcra, token bucket or leaky bucket. With `slots` all three have one algorithm, otherwise it is `plain`. The
 * capacity is the option `capacityName`, given as `capacity`.
 */
export function debtPolicy(
  plain: Algorithm,
  options: DebtOptions,
  capacityName: string,
  capacity?: number,
): Policy {
  const numbers = { capacity: { name: capacityName, value: capacity }, multiplied: true }
  if (options.slots === undefined) return new Policy(plain, options, numbers)
  if (!(Number.isInteger(options.slots) && options.slots >= 4 && options.slots <= 64)) {
    throw expected(PolicyError, 'INVALID_OPTION', 'slots must be a whole number from 4 to 64', options.slots)
  }
  return new Policy(slotted, options, { ...numbers, buckets: options.slots })
}

/** Checks that capacity x window leaves room for exact arithmetic. */
export function check(policy: Policy, name: string): void {
  const largest = Math.floor(LARGEST_PRODUCT / policy.windowTicks)
  if (policy.capacity <= largest) return
  const advice = `a smaller ${name}, a shorter window, or fixedWindow, which has no such bound`
  throw new PolicyError(
    'CAPACITY_TOO_LARGE',
    `${name} must be at most ${largest} for this window, got ${policy.capacity}: use ${advice}`,
  )
}

export const algorithm: Algorithm = {
  name: 'gcra',
  ring: false,
  cells: () => 3,
  earliest,
  admit,
  view,
  take,
  release,
  holds,
  leasing,
  check,
}

/** The algorithm of gcra, token bucket and leaky bucket with `slots`. */
const slotted = withSlots(algorithm, debtAt)
