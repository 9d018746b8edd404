import {
  type Algorithm,
  type Charge,
  LARGEST_PRODUCT,
  type Lease,
  noEnd,
  Policy,
  type PolicyOptions,
  type View,
} from './contract/policy.js'
import { expected, PolicyError } from '../values/errors.js'
import type { State } from './contract/state.js'
import * as slots from './debt/slots.js'

/*
 * The generic cell rate algorithm, as a debt that drains. ITU-T I.371 keeps TAT, the theoretical arrival time, and
 * admits a cost c at t when max(TAT, t) + cT - t <= burst * T, with T = window / limit. T is seldom whole, so the
 * same is kept multiplied by the limit: debt = (TAT - t) * limit, in units x ticks. A unit adds a whole window of
 * ticks, each tick drains `limit`, and every number stays an exact integer.
 *
 * Token bucket and leaky bucket are this debt seen from two other sides.
 */

/** debt in units x ticks, as it stood at the instant `at`, and the largest limit that has drained it. */
const DEBT = 0
const AT = 1
const FASTEST = 2

export interface DebtOptions extends PolicyOptions {
  /**
   * Keeps the charges of the last two windows apart in so many slots, 4 to 64, so that units can be given back long after
   * they were charged. It costs 8 bytes a slot and key. Default: none; what has drained meanwhile is not given back.
   */
  readonly slots?: number
}

export interface GcraOptions extends DebtOptions {
  /** Most units at once, counting the first; default `limit`. 1 spreads calls evenly. */
  readonly burst?: number
}

/**
 * Spaces calls evenly at limit/window, `burst` of them may come at once. Any span of length s admits at most
 * burst + limit * s / window.
 * @throws {PolicyError} when a number is not positive and whole, or burst x window passes 2^52.
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
 * A debt is a workload, and what has drained since the charge was given back by time already. With the charge and without
 * it the debts differ by its cost at first; the difference shrinks only while the smaller debt is empty, by no more than
 * the fastest limit drains. As much as surely is left of it is given back.
 */
export function release(state: State, policy: Policy, now: number, charge: Charge, units: number): number {
  const debt = drain(state, policy, now)
  const drained = Math.ceil((now - charge.at) / policy.tick) * state.get(FASTEST)
  const left = charge.cost * policy.windowTicks - drained
  const given = Math.max(0, Math.min(units * policy.windowTicks, left, debt))
  state.set(DEBT, debt - given)
  return given / policy.windowTicks
}

/** As `admit`, with the units counted in their slot as well. */
export function admitInSlot(state: State, policy: Policy, at: number, cost: number): number {
  forgetOtherPace(state, policy)
  const isFirst = debtAt(state, policy, at) === 0
  const isSteady = state.get(FASTEST) <= policy.limit
  const units = admit(state, policy, at, cost)
  if (cost < 0) return units
  if (isFirst && isSteady) slots.begin(state, policy, at)
  slots.record(state, policy, at, units)
  return units
}

/** As `release`, but where the charge is kept apart the debt is computed anew without it. */
export function releaseFromSlot(
  state: State,
  policy: Policy,
  now: number,
  charge: Charge,
  units: number,
): number {
  forgetOtherPace(state, policy)
  const debt = debtAt(state, policy, now)
  const given = release(state, policy, now, charge, units)
  if (!slots.take(state, policy, charge, units)) return given
  const owed = slots.recount(state, policy, now)
  if (owed >= state.get(DEBT)) return given
  state.set(DEBT, owed)
  state.set(AT, now)
  return Math.min(units, (debt - owed) / policy.windowTicks)
}

/** The slots hold one limit's debt alone. */
function forgetOtherPace(state: State, policy: Policy): void {
  const fastest = state.get(FASTEST)
  if (fastest !== 0 && fastest !== policy.limit) slots.forget(state)
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
  // What is left of a tick is kept, unless the debt ends inside that tick: time beyond it is nobody's credit.
  if (debt === 0) state.set(AT, at)
  else if (at > since) state.set(AT, debt <= policy.limit ? at : at - ((at - since) % policy.tick))
  if (policy.limit > state.get(FASTEST)) state.set(FASTEST, policy.limit)
}

/** The instant at which no more than `room` is owed. */
function paidTo(state: State, policy: Policy, room: number): number {
  return state.get(AT) + Math.ceil((state.get(DEBT) - room) / policy.limit) * policy.tick
}

/** Shows the key with `debt` left at `now`. */
function show(state: State, policy: Policy, now: number, debt: number, view: View): void {
  view.remaining = Math.max(0, policy.capacity - Math.ceil(debt / policy.windowTicks))
  view.resetAt = debt === 0 ? now : paidTo(state, policy, 0)
}

/** What is left of the debt at `instant`. The product may round above 2^53, where it exceeds any debt anyhow. */
function debtAt(state: State, policy: Policy, instant: number): number {
  const debt = state.get(DEBT)
  const elapsed = instant - state.get(AT)
  if (debt === 0 || elapsed <= 0) return debt
  return Math.max(0, debt - Math.floor(elapsed / policy.tick) * policy.limit)
}

/**
 * What is served in [s, t] was booked in [s - ttl, t], where the rate alone gives limit * ttl / window more than in
 * [s, t]: so much of the capacity is kept back.
 */
export const lease: Lease = {
  book(policy, ttlMs) {
    const product = BigInt(policy.limit) * BigInt(ttlMs)
    const windowMs = BigInt(policy.windowMs)
    const keptBack = Number((product + windowMs - 1n) / windowMs)
    return keptBack < policy.capacity ? policy.with({ capacity: policy.capacity - keptBack }) : undefined
  },
  end: noEnd,
}

/** A policy of the debt family: `plain`, or with slots that which all of the family have in common. */
export function debtPolicy(plain: Algorithm, options: DebtOptions, name: string, value?: number): Policy {
  const numbers = { capacity: { name, value }, multiplied: true }
  if (options.slots === undefined) return new Policy(plain, options, numbers)
  if (!(Number.isInteger(options.slots) && options.slots >= 4 && options.slots <= 64)) {
    throw expected(PolicyError, 'INVALID_OPTION', 'slots must be a whole number from 4 to 64', options.slots)
  }
  return new Policy(slotted, options, { ...numbers, buckets: options.slots })
}

/** Capacity x window must leave room for exact arithmetic. */
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
  lease,
  check,
}

/** gcra, token bucket and leaky bucket with slots. */
const slotted: Algorithm = {
  name: 'gcra-slots',
  ring: false,
  cells: slots.cells,
  earliest,
  admit: admitInSlot,
  view,
  release: releaseFromSlot,
  lease,
  check(policy, name) {
    check(policy, name)
    slots.checkSlots(policy, name)
  },
}

/** The options that lead to shapes of their own; the conformance kit runs every law on each. @public */
export const variants: readonly Partial<GcraOptions>[] = [{}, { slots: 16 }, { slots: 4 }]
