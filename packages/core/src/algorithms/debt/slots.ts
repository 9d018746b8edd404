import { type Charge, LARGEST_PRODUCT, type Policy } from '../contract/policy.js'
import { PolicyError } from '../../values/errors.js'
import type { State } from '../contract/state.js'

/*
 * The charges of the last two windows, counted apart in slots of equal width, and the debt before them. With it the debt
 * can be computed anew without the units of one charge, however long ago that was. Each slot's charges count as if they
 * had come at its end, which never makes the debt smaller than it is.
 */

/**
 * Behind the cells of gcra.ts: the instant from which on charges are kept apart; the debt, in units x ticks, at which the
 * oldest slot began; the number of the newest slot; then the units of each slot by its number modulo their count.
 */
const BEGUN = 3
const BEFORE = 4
const NEWEST = 5
const UNITS = 6

/** As the instant of BEGUN: charges are not kept apart, as other limits have drained this debt too. */
const UNKNOWN = 2 ** 53

/** A debt that is computed anew is cut here, so that no sum passes 2^53. */
const MOST_DEBT = LARGEST_PRODUCT

export const cells = (policy: Policy): number => UNITS + policy.buckets

/** @throws {PolicyError} CAPACITY_TOO_LARGE where sums of the slots would not be exact. */
export function checkSlots(policy: Policy, name: string): void {
  if (mostUnits(policy) * policy.windowTicks <= LARGEST_PRODUCT) return
  throw new PolicyError(
    'CAPACITY_TOO_LARGE',
    `${name} and limit are too large for slots in this window, got ${policy.capacity} and ${policy.limit}: ` +
      `use a shorter window, or slidingWindow, which has no such bound`,
  )
}

/** Another limit drains the debt: until it is paid off, charges are not kept apart. */
export function forget(state: State): void {
  state.set(BEGUN, UNKNOWN)
}

/** Nothing is owed at the instant `at`: from here on charges are kept apart. */
export function begin(state: State, policy: Policy, at: number): void {
  state.set(BEGUN, at)
  state.set(BEFORE, 0)
  state.set(NEWEST, slotOf(policy, at))
  for (let i = 0; i < policy.buckets; i++) state.set(UNITS + i, 0)
}

/** Counts units that were charged at the instant `at`. */
export function record(state: State, policy: Policy, at: number, units: number): void {
  if (state.get(BEGUN) === UNKNOWN) return
  const slot = slotOf(policy, at)
  slideTo(state, policy, slot)
  const count = unitsIn(state, policy, slot)
  const added = Math.min(Math.ceil(units), Math.max(0, mostUnits(policy) - count))
  state.set(cellOf(policy, slot), count + added)
}

/** Takes units of a charge out of its slot. Returns whether the charge is kept apart. */
export function take(state: State, policy: Policy, charge: Charge, units: number): boolean {
  const slot = slotOf(policy, charge.at)
  const newest = state.get(NEWEST)
  const isKept = charge.at >= state.get(BEGUN) && slot <= newest && slot > newest - policy.buckets
  if (isKept) state.set(cellOf(policy, slot), Math.max(0, unitsIn(state, policy, slot) - units))
  return isKept
}

/** The debt at `instant`, no earlier than the newest charge, computed from the slots. */
export function recount(state: State, policy: Policy, instant: number): number {
  const newest = state.get(NEWEST)
  let debt = state.get(BEFORE)
  for (let slot = newest - policy.buckets + 1; slot < newest; slot++) {
    debt = behind(debt, width(policy), unitsIn(state, policy, slot), policy)
  }
  const ticks = Math.floor((instant - newest * width(policy) * policy.tick) / policy.tick)
  const inNewest = Math.min(ticks, width(policy))
  debt = behind(debt, inNewest, unitsIn(state, policy, newest), policy)
  return Math.max(0, debt - (ticks - inNewest) * policy.limit)
}

/** Makes `slot` the newest. Slots that fall out are added to the debt before the others. */
function slideTo(state: State, policy: Policy, slot: number): void {
  const { buckets } = policy
  const newest = state.get(NEWEST)
  if (slot <= newest) return
  const end = Math.min(newest, slot - buckets)
  let debt = state.get(BEFORE)
  for (let b = newest - buckets + 1; b <= end; b++) {
    debt = behind(debt, width(policy), unitsIn(state, policy, b), policy)
  }
  const empty = Math.max(0, slot - buckets - newest)
  state.set(BEFORE, Math.max(0, debt - empty * width(policy) * policy.limit))
  for (let b = Math.max(newest + 1, slot - buckets + 1); b <= slot; b++) state.set(cellOf(policy, b), 0)
  state.set(NEWEST, slot)
}

/** A debt after it has drained for so many ticks and so many units were charged. */
function behind(debt: number, ticks: number, units: number, policy: Policy): number {
  return Math.min(MOST_DEBT, Math.max(0, debt - ticks * policy.limit) + units * policy.windowTicks)
}

/** Most units that calls can charge within a slot, saturated charges included. */
function mostUnits(policy: Policy): number {
  return 2 * policy.capacity + Math.ceil((policy.limit * width(policy)) / policy.windowTicks)
}

function unitsIn(state: State, policy: Policy, slot: number): number {
  return state.get(cellOf(policy, slot))
}

function cellOf({ buckets }: Policy, slot: number): number {
  const i = slot % buckets
  return UNITS + (i < 0 ? i + buckets : i) // below 0 only in the first two windows after the epoch
}

function slotOf(policy: Policy, instant: number): number {
  return Math.floor(instant / (width(policy) * policy.tick))
}

/** Ticks in a slot: together they span two windows, or a little more. */
function width({ windowTicks, buckets }: Policy): number {
  return Math.ceil((2 * windowTicks) / buckets)
}
