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
const UNITS = 6

/** In BEGUN: the slots are not valid, because another limit has drained this debt too. */
const UNKNOWN = 2 ** 53

/** Bound of a computed debt, so that no sum exceeds 2^53. */
const MOST_DEBT = LARGEST_PRODUCT

/** The algorithm of gcra, token bucket and leaky bucket with `slots`. */
export const debtWithSlots: Algorithm = {
  name: 'gcra-slots',
  ...debt,
  cells: (policy) => UNITS + policy.buckets,
  take: undefined, // that of the debt counts a charge in no slot

  /** As without slots; the units are also counted in the slot of `at`. */
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

  /** As without slots, unless the charge is in a slot: then the debt is computed again without its units. */
  release(state, policy, now, charge, units) {
    forgetOtherLimits(state, policy)
    const before = debtAt(state, policy, now)
    const given = debt.release(state, policy, now, charge, units)
    if (!takeFromSlot(state, policy, charge, units)) return given
    const owed = recount(state, policy, now)
    if (owed >= state.get(DEBT)) return given
    state.set(DEBT, owed)
    state.set(SINCE, now)
    return Math.min(units, (before - owed) / policy.windowTicks)
  },

  /** Checks also that sums of the slots are exact. */
  check(policy, name) {
    debt.check(policy, name)
    if (mostUnits(policy) * policy.windowTicks <= LARGEST_PRODUCT) return
    const numbers = `${name} and limit are too large for slots in this window, got ${policy.capacity} and ${policy.limit}`
    const advice = 'use a shorter window, or slidingWindow, which has no such bound'
    throw new PolicyError('CAPACITY_TOO_LARGE', `${numbers}: ${advice}`)
  },
}

/**
 * Makes the slots invalid, until the debt is paid off, if a policy of another limit drains it too: charges in slots can
 * be counted again under one limit only.
 */
function forgetOtherLimits(state: State, policy: Policy): void {
  const fastest = state.get(FASTEST)
  if (fastest !== 0 && fastest !== policy.limit) state.set(BEGUN, UNKNOWN)
}

/** Begins to count charges in slots at the instant `at`, at which nothing is owed. */
function begin(state: State, policy: Policy, at: number): void {
  state.set(BEGUN, at)
  state.set(BEFORE, 0)
  state.set(NEWEST, slotOf(policy, at))
  for (let i = 0; i < policy.buckets; i++) state.set(UNITS + i, 0)
}

/**
 * Counts units that were charged at the instant `at` in its slot, as far as a slot may hold. Slots that are not valid count
 * nothing.
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
 * Takes units of a charge out of its slot. Returns false if the charge is in none: it is too old, or was made while the
 * slots were not valid.
 */
function takeFromSlot(state: State, policy: Policy, charge: Charge, units: number): boolean {
  const slot = slotOf(policy, charge.at)
  const newest = state.get(NEWEST)
  const isKept = charge.at >= state.get(BEGUN) && slot <= newest && slot > newest - policy.buckets
  if (isKept) state.set(cellOf(policy, slot), Math.max(0, unitsIn(state, policy, slot) - units))
  return isKept
}

/**
 * The debt at `instant`, no earlier than the newest charge, computed from the slots: the debt behind all slots but the newest, plus
 * the units of the newest, less what has drained since that slot began.
 */
function recount(state: State, policy: Policy, instant: number): number {
  const newest = state.get(NEWEST)
  const before = debtBehind(state, policy, newest - 1)
  const ticks = Math.floor((instant - newest * width(policy) * policy.tick) / policy.tick)
  const inNewest = Math.min(ticks, width(policy))
  const debt = behind(before, inNewest, unitsIn(state, policy, newest), policy)
  return Math.max(0, debt - (ticks - inNewest) * policy.limit)
}

/** Makes `slot` the newest, if it is later. The oldest slots fall out, and what they owe is added to the debt before the others. */
function slideTo(state: State, policy: Policy, slot: number): void {
  const { buckets } = policy
  const newest = state.get(NEWEST)
  if (slot <= newest) return
  const debt = debtBehind(state, policy, Math.min(newest, slot - buckets))
  const empty = Math.max(0, slot - buckets - newest)
  state.set(BEFORE, Math.max(0, debt - empty * width(policy) * policy.limit))
  for (let b = Math.max(newest + 1, slot - buckets + 1); b <= slot; b++) state.set(cellOf(policy, b), 0)
  state.set(NEWEST, slot)
}

/**
 * The debt, in units x ticks, at the end of the slot `last`: the debt before the oldest slot, drained and charged
 * through each slot up to it.
 */
function debtBehind(state: State, policy: Policy, last: number): number {
  let debt = state.get(BEFORE)
  for (let slot = state.get(NEWEST) - policy.buckets + 1; slot <= last; slot++) {
    debt = behind(debt, width(policy), unitsIn(state, policy, slot), policy)
  }
  return debt
}

/**
 * The debt, in units x ticks, after `ticks` of draining and a charge of `units`; bounded, so that sums stay exact.
 */
function behind(debt: number, ticks: number, units: number, policy: Policy): number {
  return Math.min(MOST_DEBT, Math.max(0, debt - ticks * policy.limit) + units * policy.windowTicks)
}

/** Most units that can be charged within a slot, with charges that saturate. */
function mostUnits(policy: Policy): number {
  return 2 * policy.capacity + Math.ceil((policy.limit * width(policy)) / policy.windowTicks)
}

/** The units that were charged in a slot, which must be one of those that are kept. */
function unitsIn(state: State, policy: Policy, slot: number): number {
  return state.get(cellOf(policy, slot))
}

/** The cell of a slot. Slots are numbered since 1970, and their cells are used in turn. */
function cellOf({ buckets }: Policy, slot: number): number {
  const i = slot % buckets
  return UNITS + (i < 0 ? i + buckets : i) // below 0 only in the first two windows after the Unix epoch
}

/** The number of the slot in which an instant lies. Slots are numbered from the Unix epoch on. */
function slotOf(policy: Policy, instant: number): number {
  return Math.floor(instant / (width(policy) * policy.tick))
}

/** Ticks in a slot: all slots together span two windows, or a little more. */
function width({ windowTicks, buckets }: Policy): number {
  return Math.ceil((2 * windowTicks) / buckets)
}
