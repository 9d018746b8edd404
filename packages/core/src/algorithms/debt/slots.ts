import { type Charge, LARGEST_PRODUCT, type Policy } from '../contract/policy.js'
import { PolicyError } from '../../values/errors.js'
import type { State } from '../contract/state.js'
import { BEFORE, BEGUN, NEWEST, UNITS } from './layout.js'

/*
 * The charges of the last two windows, counted in slots of equal width, and the debt before them. From these, the debt can
 * be computed again without the units of one charge, however long ago that was made. The charges of a slot count as if they
 * had been made at its end, which never makes the debt smaller than it is.
 */

/** In BEGUN: the slots are not valid, because another limit has drained this debt too. */
const UNKNOWN = 2 ** 53

/** Bound of a computed debt, so that no sum exceeds 2^53. */
const MOST_DEBT = LARGEST_PRODUCT

export const cells = (policy: Policy): number => UNITS + policy.buckets

/** @throws {PolicyError} CAPACITY_TOO_LARGE if sums of the slots would not be exact. */
export function checkSlots(policy: Policy, name: string): void {
  if (mostUnits(policy) * policy.windowTicks <= LARGEST_PRODUCT) return
  throw new PolicyError(
    'CAPACITY_TOO_LARGE',
    `${name} and limit are too large for slots in this window, got ${policy.capacity} and ${policy.limit}: ` +
      `use a shorter window, or slidingWindow, which has no such bound`,
  )
}

/** Invalidates the slots until the debt is paid off, because another limit drains it. */
export function forget(state: State): void {
  state.set(BEGUN, UNKNOWN)
}

/** Begins to count charges in slots at the instant `at`, at which nothing is owed. */
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

/** Takes units of a charge out of its slot. Returns whether the charge was counted in a slot. */
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

/** A debt after it has drained for `ticks` and `units` were charged. */
function behind(debt: number, ticks: number, units: number, policy: Policy): number {
  return Math.min(MOST_DEBT, Math.max(0, debt - ticks * policy.limit) + units * policy.windowTicks)
}

/** Most units that can be charged within a slot, with charges that saturate. */
function mostUnits(policy: Policy): number {
  return 2 * policy.capacity + Math.ceil((policy.limit * width(policy)) / policy.windowTicks)
}

function unitsIn(state: State, policy: Policy, slot: number): number {
  return state.get(cellOf(policy, slot))
}

function cellOf({ buckets }: Policy, slot: number): number {
  const i = slot % buckets
  return UNITS + (i < 0 ? i + buckets : i) // below 0 only in the first two windows after the Unix epoch
}

function slotOf(policy: Policy, instant: number): number {
  return Math.floor(instant / (width(policy) * policy.tick))
}

/** Ticks in a slot: together they span two windows, or a little more. */
function width({ windowTicks, buckets }: Policy): number {
  return Math.ceil((2 * windowTicks) / buckets)
}
