import { LARGEST_PRODUCT, type Policy, type View } from '../contract/policy.js'
import type { State } from '../contract/state.js'
import { expected, PolicyError } from '../../values/errors.js'

/*
 * The counts of a sliding window: buckets of equal width, aligned to the Unix epoch, of which the N+1 newest are kept, by their
 * number modulo N+1, with their total.
 */

/** Number of the newest bucket, total of the N+1 buckets that end with it, then their counts. */
const NEWEST = 0
const TOTAL = 1
const COUNTS = 2

export const cells = (policy: Policy): number => COUNTS + policy.buckets + 1

/** @throws {PolicyError} INVALID_BUCKETS unless the buckets divide the window into whole ticks. */
export function checkBuckets({ windowTicks, tick, buckets }: Policy): void {
  if (windowTicks % buckets === 0) return
  const unit = tick === 1 ? 'microseconds' : 'milliseconds'
  const bound = `buckets must divide the window of ${windowTicks} ${unit}`
  throw expected(PolicyError, 'INVALID_BUCKETS', bound, buckets)
}

/** @throws {PolicyError} INVALID_BUCKETS as above; CAPACITY_TOO_LARGE if counts times ticks pass what a double holds exactly. */
export function checkFadingBuckets(policy: Policy): void {
  checkBuckets(policy)
  // The N+1 buckets together hold up to four times the limit: twice that counts, and as much that has faded.
  const largest = Math.floor(LARGEST_PRODUCT / 2 / (policy.windowTicks / policy.buckets))
  if (policy.limit <= largest) return
  throw expected(
    PolicyError,
    'CAPACITY_TOO_LARGE',
    `limit must be at most ${largest} for weighted buckets of this width (use more buckets, or count: 'whole')`,
    policy.limit,
  )
}

export function holds(state: State, policy: Policy, latest: number): boolean {
  let sum = 0
  for (let i = 0; i <= policy.buckets; i++) sum += state.get(COUNTS + i)
  return state.get(NEWEST) <= bucketOf(policy, latest) && state.get(TOTAL) === sum
}

/** Adds units to a bucket, which is the newest from then on. */
export function putIn(state: State, policy: Policy, bucket: number, units: number): void {
  slideTo(state, policy, bucket)
  const cell = cellOf(policy, bucket)
  state.set(cell, state.get(cell) + units)
  state.set(TOTAL, state.get(TOTAL) + units)
}

/** Takes units out of the newest buckets at or before `bucket`. */
export function giveBack(state: State, policy: Policy, bucket: number, cost: number): number {
  const newest = state.get(NEWEST)
  const oldest = Math.max(newest, bucket) - policy.buckets
  let given = 0
  for (let b = Math.min(bucket, newest); given < cost && b >= oldest; b--) {
    given += takeOut(state, policy, b, cost - given)
  }
  return given
}

/** Takes up to `units` out of a bucket; returns how many were there. */
export function takeOut(state: State, policy: Policy, bucket: number, units: number): number {
  const count = countOf(state, policy, bucket)
  const taken = Math.min(units, count)
  if (taken === 0) return 0
  state.set(cellOf(policy, bucket), count - taken)
  state.set(TOTAL, state.get(TOTAL) - taken)
  return taken
}

/** Makes `bucket` the newest and empties the buckets that leave the window. */
function slideTo(state: State, policy: Policy, bucket: number): void {
  const newest = state.get(NEWEST)
  if (bucket <= newest) return
  const total = totalAt(state, policy, bucket)
  for (let b = Math.max(newest + 1, bucket - policy.buckets); b <= bucket; b++)
    state.set(cellOf(policy, b), 0)
  state.set(NEWEST, bucket)
  state.set(TOTAL, total)
}

/** Units that count at `instant`. */
export function wholeAt(state: State, policy: Policy, instant: number): number {
  return totalAt(state, policy, bucketOf(policy, instant))
}

/** The same with the oldest bucket weighted by the part that still counts, rounded up. */
export function fadingAt(state: State, policy: Policy, instant: number): number {
  const newest = bucketOf(policy, instant)
  const faded = countOf(state, policy, newest - policy.buckets) * ticksInto(policy, instant)
  return totalAt(state, policy, newest) - Math.floor(faded / (policy.windowTicks / policy.buckets))
}

/** Sum of the N+1 buckets that end with `bucket`: the running total less the buckets that have left since. */
export function totalAt(state: State, policy: Policy, bucket: number): number {
  const newest = state.get(NEWEST)
  if (bucket - policy.buckets > newest) return 0
  let total = state.get(TOTAL)
  for (let b = newest - policy.buckets; b < bucket - policy.buckets; b++) total -= countOf(state, policy, b)
  return total
}

/** Instant at which the last bucket with units leaves the window. */
function emptyAt(state: State, policy: Policy): number {
  const newest = state.get(NEWEST)
  let bucket = newest
  while (bucket > newest - policy.buckets && countOf(state, policy, bucket) === 0) bucket--
  return (bucket + policy.buckets + 1) * width(policy)
}

/** Fills `view` for a key of which `counted` units count at `now`. */
export function show(state: State, policy: Policy, now: number, counted: number, view: View): void {
  view.remaining = Math.max(0, policy.limit - counted)
  view.resetAt = counted === 0 ? now : emptyAt(state, policy)
}

export function countOf(state: State, policy: Policy, bucket: number): number {
  const newest = state.get(NEWEST)
  return bucket > newest || bucket < newest - policy.buckets ? 0 : state.get(cellOf(policy, bucket))
}

function cellOf(policy: Policy, bucket: number): number {
  const slot = bucket % (policy.buckets + 1)
  return COUNTS + (slot < 0 ? slot + policy.buckets + 1 : slot) // below 0 only in the first window after the Unix epoch
}

export function bucketOf(policy: Policy, instant: number): number {
  return Math.floor(instant / width(policy))
}

/** Whole ticks since the newest bucket began. */
export function ticksInto(policy: Policy, instant: number): number {
  return Math.floor((instant % width(policy)) / policy.tick)
}

export function width(policy: Policy): number {
  return policy.window / policy.buckets
}
