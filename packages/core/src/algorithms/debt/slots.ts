import { type Algorithm, type Charge, LARGEST_PRODUCT, type Policy } from '../contract/policy.js'
import type { State } from '../contract/state.js'
import { PolicyError } from '../../values/errors.js'
import { DEBT, debt, debtAt, FASTEST, SINCE } from './debt.js'

/*
 * The option `slots`; twin of lua/gcra-slots.lua. The charges of the last two windows are counted in slots of equal width, and
 * the debt before them is kept. From these, the debt can be computed again without the units of one charge, however long ago
 * that was made. The charges of a slot count as if they had been made at its end, which never makes the debt smaller than it
 * is.
 */

/**
 * The cells behind those of the debt: the instant from which on charges are counted in slots; the debt, in units x ticks, at
 * which the oldest slot began; the number of the newest slot; then the units of each slot, by its number modulo their count.
 */
const BEGUN = 3
const BEFORE = 4
const NEWEST = 5
const FIRST_SLOT = 6

/** In BEGUN: the slots are not valid, because another limit has drained this debt too. */
const UNKNOWN = 2 ** 53

/** Bound of a computed debt, so that no sum exceeds 2^53. */
const MOST_DEBT = LARGEST_PRODUCT

/** The algorithm of gcra, token bucket and leaky bucket with `slots`. */
export const debtWithSlots: Algorithm = {
  name: 'gcra-slots',
  ...debt,
  drains: false, // its slots give all of the last two windows back
  cells: (policy) => FIRST_SLOT + policy.buckets,
  take: undefined, // that of the debt counts a charge in no slot

  /**
   * Charges `cost` units at the instant `at`, as the debt without slots does, and counts them also in the slot (a part of the
   * last two windows) of `at`, so that `release` can compute the debt from the slots. Returns the units that took effect. Such a
   * debt is right only if the slots hold all of its charges and one limit alone drains it. So counting begins when nothing is
   * owed, and not while FASTEST, the largest limit that the key has had, is above this policy's. A negative cost, a refund,
   * leaves the slots as they are: counting too much never makes a debt too small.
   */
  admit(state, policy, at, cost) {
    forgetOtherLimits(state, policy)
    const isFirst = debtAt(state, policy, at) === 0
    const isSteady = state.get(FASTEST) <= policy.limit
    const units = debt.admit(state, policy, at, cost)
    if (cost < 0) return units
    if (isFirst && isSteady) begin(state, policy, at)
    record(state, policy, at, units)
    return units
  },

  /**
   * Gives up to `units` units of a charge back at `now`, and returns how many took effect. There are two ways. The one without slots
   * (`debt.release`) lowers the debt by what surely has not drained of the charge, which is nothing if the charge is long past. The
   * other counts the debt anew from all slots, of which that of the charge has these units less. Both may give back too little and
   * never too much, so the smaller debt stays. A debt is a product: one unit adds `windowTicks` to it.
   */
  release(state, policy, now, charge, units) {
    forgetOtherLimits(state, policy)
    const before = debtAt(state, policy, now)
    const givenWithoutSlots = debt.release(state, policy, now, charge, units)
    if (!takeFromSlot(state, policy, charge, units)) return givenWithoutSlots
    const recounted = recount(state, policy, now)
    if (recounted >= state.get(DEBT)) return givenWithoutSlots
    state.set(DEBT, recounted)
    state.set(SINCE, now)
    return Math.min(units, (before - recounted) / policy.windowTicks)
  },

  /**
   * Refuses a policy whose numbers would not be exact. A debt is a product, to which one unit adds `windowTicks`. Neither a
   * full debt, which `debt.check` looks at, nor the most units that one slot (a part of the last two windows, whose charges are
   * counted apart) can count may weigh more than 2^52. `name` is the user's option that set the capacity, for the message.
   * @throws {PolicyError} CAPACITY_TOO_LARGE.
   */
  check(policy, name) {
    debt.check(policy, name)
    if (mostUnits(policy) * policy.windowTicks <= LARGEST_PRODUCT) return
    const numbers = `${name} and limit are too large for slots in this window, got ${policy.capacity} and ${policy.limit}`
    const advice = 'use a shorter window, or slidingWindow, which has no such bound'
    throw new PolicyError('CAPACITY_TOO_LARGE', `${numbers}: ${advice}`)
  },
}

/**
 * Declares the slots, which count the charges of the last two windows, invalid if a policy of another limit has drained this
 * debt. When units are given back, the debt is computed again from the slots, as if this policy's limit alone had drained it
 * throughout, which would then be wrong. So BEGUN, the instant from which on slots count, becomes UNKNOWN, until counting begins
 * anew after the debt is paid off. FASTEST holds the largest limit that has drained the debt, 0 before the first charge.
 */
function forgetOtherLimits(state: State, policy: Policy): void {
  const fastest = state.get(FASTEST)
  if (fastest !== 0 && fastest !== policy.limit) state.set(BEGUN, UNKNOWN)
}

/**
 * Begins to count charges in slots (`buckets` of them, equal parts of the last two windows) from the instant `at` on: all slots are
 * empty, that of `at` is the newest, and the debt BEFORE the oldest one is 0. It must be 0 at that instant: when units are given back,
 * the debt is computed from the slots, so they have to hold all of its charges.
 */
function begin(state: State, policy: Policy, at: number): void {
  state.set(BEGUN, at)
  state.set(BEFORE, 0)
  state.set(NEWEST, slotOf(policy, at))
  for (let i = 0; i < policy.buckets; i++) state.set(FIRST_SLOT + i, 0)
}

/**
 * Adds `units`, charged at the instant `at`, to the count of the slot (a part of the last two windows) in which `at` lies.
 * Fractions are rounded up, so that a debt computed from slots is never too small, and a slot counts at most `mostUnits`, so
 * that sums stay exact. While the slots are invalid, nothing is counted.
 */
function record(state: State, policy: Policy, at: number, units: number): void {
  if (state.get(BEGUN) === UNKNOWN) return
  const slot = slotOf(policy, at)
  slideTo(state, policy, slot)
  const count = unitsIn(state, policy, slot)
  const added = Math.min(Math.ceil(units), Math.max(0, mostUnits(policy) - count))
  state.set(cellOf(policy, slot), count + added)
}

/**
 * Takes `units` of a charge out of the slot in which the charge was counted. Returns false, with nothing written, if no slot
 * counts it: it was charged before BEGUN, the instant from which on slots count (2^53 while they are invalid), or its slot has
 * made room for newer ones.
 */
function takeFromSlot(state: State, policy: Policy, charge: Charge, units: number): boolean {
  const slot = slotOf(policy, charge.at)
  const newest = state.get(NEWEST)
  const isKept = charge.at >= state.get(BEGUN) && slot <= newest && slot > newest - policy.buckets
  if (isKept) state.set(cellOf(policy, slot), Math.max(0, unitsIn(state, policy, slot) - units))
  return isKept
}

/**
 * Returns the debt at `instant`, computed from the charges that slots count; a unit adds `windowTicks` to it, a tick drains `limit`.
 * `before` is the debt at the end of the second newest slot. The time in the newest slot drains that; then the units of the newest
 * slot are added, as if all were charged at its end or at `instant`, whichever is earlier; the time after that slot drains the sum.
 * Charges that count as late as that never make the debt too small.
 */
function recount(state: State, policy: Policy, instant: number): number {
  const newest = state.get(NEWEST)
  const before = debtAfterSlot(state, policy, newest - 1)
  const ticks = Math.floor((instant - newest * width(policy) * policy.tick) / policy.tick)
  const inNewest = Math.min(ticks, width(policy))
  const debt = drainAndCharge(before, inNewest, unitsIn(state, policy, newest), policy)
  return Math.max(0, debt - (ticks - inNewest) * policy.limit)
}

/**
 * Makes the slot of this number the newest, if it is later than the newest so far. Only the last `buckets` slots are kept, each
 * in one cell. So the oldest are dropped: BEFORE becomes the debt at the end of the last dropped slot. `empty` counts the slots
 * after the newest so far that passed without a charge and are dropped too; each only drains the debt, by `limit` a tick.
 */
function slideTo(state: State, policy: Policy, slot: number): void {
  const { buckets } = policy
  const newest = state.get(NEWEST)
  if (slot <= newest) return
  const debt = debtAfterSlot(state, policy, Math.min(newest, slot - buckets))
  const empty = Math.max(0, slot - buckets - newest)
  state.set(BEFORE, Math.max(0, debt - empty * width(policy) * policy.limit))
  for (let b = Math.max(newest + 1, slot - buckets + 1); b <= slot; b++) state.set(cellOf(policy, b), 0)
  state.set(NEWEST, slot)
}

/**
 * Returns the debt at the end of the slot with the number `last`, computed from the charges that slots count. A slot is one of the
 * `buckets` equal parts of the last two windows. The debt begins as that before the oldest slot (BEFORE). For each slot up to
 * `last` it then drains for the width of a slot, and grows by the units charged in the slot. A debt is a product, so that it is
 * a whole number: a charged unit adds `windowTicks` to it, and each tick drains `limit` from it.
 */
function debtAfterSlot(state: State, policy: Policy, last: number): number {
  let debt = state.get(BEFORE)
  for (let slot = state.get(NEWEST) - policy.buckets + 1; slot <= last; slot++) {
    debt = drainAndCharge(debt, width(policy), unitsIn(state, policy, slot), policy)
  }
  return debt
}

/**
 * Returns what a debt has become after `ticks` of draining, `limit` a tick, and then a charge of `units`, `windowTicks` a unit;
 * bounded, to stay exact.
 */
function drainAndCharge(debt: number, ticks: number, units: number, policy: Policy): number {
  return Math.min(MOST_DEBT, Math.max(0, debt - ticks * policy.limit) + units * policy.windowTicks)
}

/**
 * The most units that can be charged within one slot: a debt may rise to twice the capacity, and what drains during the slot may
 * be charged again.
 */
function mostUnits(policy: Policy): number {
  return 2 * policy.capacity + Math.ceil((policy.limit * width(policy)) / policy.windowTicks)
}

/** The units that were charged in a slot, which must be one of those that are kept. */
function unitsIn(state: State, policy: Policy, slot: number): number {
  return state.get(cellOf(policy, slot))
}

/** The index of the cell that counts the units of a slot. Slots are numbered from 1970 on, and use `buckets` cells in turn. */
function cellOf({ buckets }: Policy, slot: number): number {
  const i = slot % buckets
  return FIRST_SLOT + (i < 0 ? i + buckets : i) // below 0 only in the first two windows after the Unix epoch
}

/** The number of the slot in which an instant lies. Slots are numbered from the Unix epoch on. */
function slotOf(policy: Policy, instant: number): number {
  return Math.floor(instant / (width(policy) * policy.tick))
}

/** Ticks in a slot: all slots together span two windows, or a little more. */
function width({ windowTicks, buckets }: Policy): number {
  return Math.ceil((2 * windowTicks) / buckets)
}
