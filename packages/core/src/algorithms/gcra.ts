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
import { expected, PolicyError } from '../values/errors.js'
import type { State } from './contract/state.js'
import { AT, DEBT, FASTEST } from './debt/layout.js'
import { withSlots } from './debt/with-slots.js'

/*
 * The generic cell rate algorithm, as a debt that drains. ITU-T I.371 keeps TAT, the theoretical arrival time, and
 * admits a cost c at t when max(TAT, t) + cT - t <= burst * T, with T = window / limit. T is seldom whole, so the
 * same is kept multiplied by the limit: debt = (TAT - t) * limit, in units x ticks. A unit adds a whole window of
 * ticks, each tick drains `limit`, and every number stays an exact integer.
 *
 * Token bucket and leaky bucket are this debt seen from two other sides.
 */

export interface DebtOptions extends PolicyOptions {
  /**
   * Number of slots, 4 to 64, that record the charges of the last two windows, so that units can be given back long after
   * they were charged. A slot takes 8 bytes per key.
   * @default none: units that have drained meanwhile are not given back
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
 * @throws {PolicyError} when a number is not positive and whole, or burst x window passes 2^52.
 * @example
 * import { createLimiter, gcra } from '@sluice/core'
 * // 100 a minute: up to 10 at once, then one each 600 ms.
 * const limiter = createLimiter({ policies: [gcra({ limit: 100, window: '1m', burst: 10 })] })
 * const { allowed } = await limiter.consume('user:42')
 */
export function gcra(options: GcraOptions): Policy {
  return debtPolicy(algorithm, options, 'burst', options.burst)
}

export function earliest(state: State, policy: Policy, from: number, cost: number): number {
  if (cost > policy.capacity) return Infinity
  const room = (policy.capacity - cost) * policy.windowTicks
  if (debtAt(state, policy, from) <= room) return from
  return paidTo(state, policy, room)
}

export function admit(state: State, policy: Policy, at: number, cost: number): number {
  const debt = drain(state, policy, at)
  const most = Math.max(debt, 2 * policy.capacity * policy.windowTicks)
  const owed = Math.max(0, Math.min(most, debt + cost * policy.windowTicks))
  state.set(DEBT, owed)
  return Math.abs(owed - debt) / policy.windowTicks
}

export function view(state: State, policy: Policy, now: number, view: View): void {
  show(state, policy, now, debtAt(state, policy, now), view)
}

export function take(state: State, policy: Policy, now: number, cost: number, view: View): number {
  const { capacity, windowTicks } = policy
  const debt = debtAt(state, policy, now)
  const room = (capacity - cost) * windowTicks
  if (debt > room) {
    show(state, policy, now, debt, view)
    return cost > capacity ? Infinity : paidTo(state, policy, room)
  }
  drainTo(state, policy, now, debt)
  const owed = debt + cost * windowTicks
  state.set(DEBT, owed)
  show(state, policy, now, owed, view)
  return now
}

/**
 * A debt is a workload; units that have drained since the charge were already given back by time. The debts with and without
 * the charge differ by its cost at first. The difference shrinks only while the smaller debt is empty, by at most what the
 * largest limit drains. The part of it that is certainly left is given back.
 */
export function release(state: State, policy: Policy, now: number, charge: Charge, units: number): number {
  const debt = drain(state, policy, now)
  const drained = Math.ceil((now - charge.at) / policy.tick) * state.get(FASTEST)
  const left = charge.cost * policy.windowTicks - drained
  const given = Math.max(0, Math.min(units * policy.windowTicks, left, debt))
  state.set(DEBT, debt - given)
  return given / policy.windowTicks
}

/** Lets the debt drain until the instant `at`, under this policy's limit; returns what is left. */
function drain(state: State, policy: Policy, at: number): number {
  const debt = debtAt(state, policy, at)
  drainTo(state, policy, at, debt)
  return debt
}

/** Writes that `debt` is what is left at the instant `at`. */
function drainTo(state: State, policy: Policy, at: number, debt: number): void {
  const since = state.get(AT)
  // The fraction of a tick is kept, unless the debt ends inside that tick: the time after its end is not credited.
  if (debt === 0) state.set(AT, at)
  else if (at > since) state.set(AT, debt <= policy.limit ? at : at - ((at - since) % policy.tick))
  if (policy.limit > state.get(FASTEST)) state.set(FASTEST, policy.limit)
}

/** The instant at which no more than `room` is owed. */
function paidTo(state: State, policy: Policy, room: number): number {
  return state.get(AT) + Math.ceil((state.get(DEBT) - room) / policy.limit) * policy.tick
}

/** Fills `view` for a debt of `debt` at `now`. */
function show(state: State, policy: Policy, now: number, debt: number, view: View): void {
  view.remaining = Math.max(0, policy.capacity - Math.ceil(debt / policy.windowTicks))
  view.resetAt = debt === 0 ? now : paidTo(state, policy, 0)
}

/** What is left of the debt at `instant`. A product above 2^53 may be rounded, but exceeds any debt. */
function debtAt(state: State, policy: Policy, instant: number): number {
  const debt = state.get(DEBT)
  const elapsed = instant - state.get(AT)
  if (debt === 0 || elapsed <= 0) return debt
  return Math.max(0, debt - Math.floor(elapsed / policy.tick) * policy.limit)
}

/**
 * Units that are served in [s, t] were booked in [s - ttl, t], in which the rate alone gives limit * ttl / window more than in
 * [s, t]. That much of the capacity is kept back.
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

/** A policy of the debt family: of the algorithm `plain`, or with `slots` of the one that the whole family shares. */
export function debtPolicy(plain: Algorithm, options: DebtOptions, name: string, value?: number): Policy {
  const numbers = { capacity: { name, value }, multiplied: true }
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
  leasing,
  check,
}

/** gcra, token bucket and leaky bucket with slots. */
const slotted = withSlots(algorithm, debtAt)
