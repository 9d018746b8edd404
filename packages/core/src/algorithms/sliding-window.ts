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

/*
 * The window slides over N buckets of equal width, aligned to the epoch; the N+1 that (t - window, t] touches are
 * kept, with their total. `whole` counts each of them, which never lets more than `limit` through and loses up to
 * one bucket of rate. `weighted` counts the oldest by the part of it that the window still covers, as if its calls
 * had come evenly (the two-counter form is the case N = 1, known from the Cloudflare blog, 2017).
 */

/** Number of the newest bucket, total of the N+1 buckets that end with it, then their counts by number mod N+1. */
const NEWEST = 0
const TOTAL = 1
const COUNTS = 2

export interface SlidingWindowOptions extends PolicyOptions {
  /** Equal parts of the window, 1 to 1000; default 10. Must divide the window into whole ticks. */
  readonly buckets?: number
  /** `'whole'` (default) or `'weighted'`. */
  readonly count?: 'whole' | 'weighted'
}

/**
 * whole: at most `limit` in every span of one window; sustained rate at least limit/window * N/(N+1).
 * weighted: at most limit * (1 + s/window) in a span of length s <= window.
 * @throws {PolicyError} when a number is not positive and whole, buckets do not divide the window, or (weighted)
 * limit x bucket width passes 2^51.
 */
export function slidingWindow(options: SlidingWindowOptions): Policy {
  const { buckets = 10, count = 'whole' } = options
  if (count !== 'whole' && count !== 'weighted') {
    throw expected(PolicyError, 'INVALID_OPTION', `count must be 'whole' or 'weighted'`, count)
  }
  if (!(Number.isInteger(buckets) && buckets >= 1 && buckets <= 1000)) {
    throw expected(PolicyError, 'INVALID_BUCKETS', 'buckets must be a whole number from 1 to 1000', buckets)
  }
  const weighted = count === 'weighted'
  return new Policy(weighted ? fading : algorithm, options, { buckets, multiplied: weighted })
}

function check({ windowTicks, tick, buckets }: Policy): void {
  if (windowTicks % buckets === 0) return
  const unit = tick === 1 ? 'microseconds' : 'milliseconds'
  const bound = `buckets must divide the window of ${windowTicks} ${unit}`
  throw expected(PolicyError, 'INVALID_BUCKETS', bound, buckets)
}

function checkFading(policy: Policy): void {
  check(policy)
  // The N+1 buckets together hold up to four times the limit: two that count and two that have faded.
  const largest = Math.floor(LARGEST_PRODUCT / 2 / (policy.windowTicks / policy.buckets))
  if (policy.limit <= largest) return
  throw expected(
    PolicyError,
    'CAPACITY_TOO_LARGE',
    `limit must be at most ${largest} for weighted buckets of this width (use more buckets, or count: 'whole')`,
    policy.limit,
  )
}

/** whole: the buckets pass one after the other until enough is gone. */
export function earliest(state: State, policy: Policy, from: number, cost: number): number {
  if (cost > policy.limit) return Infinity
  let oldest = bucketOf(policy, from) - policy.buckets
  let total = totalAt(state, policy, oldest + policy.buckets)
  if (total + cost <= policy.limit) return from
  while (total + cost > policy.limit) total -= countOf(state, policy, oldest++)
  return (oldest + policy.buckets) * width(policy)
}

/** weighted: in each bucket that becomes the newest, solve for the tick at which the oldest has faded enough. */
export function earliestFading(state: State, policy: Policy, from: number, cost: number): number {
  if (cost > policy.limit) return Infinity
  const ticks = policy.windowTicks / policy.buckets
  let newest = bucketOf(policy, from)
  let total = totalAt(state, policy, newest)
  let instant = from
  for (;;) {
    const oldest = countOf(state, policy, newest - policy.buckets)
    const over = (total + cost - policy.limit) * ticks
    if (over <= oldest * ticksInto(policy, instant)) return instant
    const faded = Math.ceil(over / oldest)
    if (faded < ticks) return newest * width(policy) + faded * policy.tick
    total -= oldest
    newest++
    instant = newest * width(policy)
  }
}

export function admit(state: State, policy: Policy, at: number, cost: number): number {
  return add(state, policy, at, cost, wholeAt(state, policy, at))
}

export function admitFading(state: State, policy: Policy, at: number, cost: number): number {
  return add(state, policy, at, cost, fadingAt(state, policy, at))
}

export function view(state: State, policy: Policy, now: number, view: View): void {
  show(state, policy, now, wholeAt(state, policy, now), view)
}

export function viewFading(state: State, policy: Policy, now: number, view: View): void {
  show(state, policy, now, fadingAt(state, policy, now), view)
}

export function take(state: State, policy: Policy, now: number, cost: number, view: View): number {
  const isTaken = takeNow(state, policy, now, cost, wholeAt(state, policy, now), view)
  return isTaken ? now : earliest(state, policy, now, cost)
}

export function takeFading(state: State, policy: Policy, now: number, cost: number, view: View): number {
  const isTaken = takeNow(state, policy, now, cost, fadingAt(state, policy, now), view)
  return isTaken ? now : earliestFading(state, policy, now, cost)
}

/** The units of its own bucket, while that counts. */
export function release(state: State, policy: Policy, now: number, charge: Charge, units: number): number {
  const bucket = bucketOf(policy, charge.at)
  if (bucket < bucketOf(policy, now) - policy.buckets) return 0
  return takeOut(state, policy, bucket, units)
}

/** Units that count at `instant`. */
function wholeAt(state: State, policy: Policy, instant: number): number {
  return totalAt(state, policy, bucketOf(policy, instant))
}

/** The same with the oldest bucket faded, rounded up. */
function fadingAt(state: State, policy: Policy, instant: number): number {
  const newest = bucketOf(policy, instant)
  const faded = countOf(state, policy, newest - policy.buckets) * ticksInto(policy, instant)
  return totalAt(state, policy, newest) - Math.floor(faded / (policy.windowTicks / policy.buckets))
}

/** A charge saturates where twice the limit counts; what fits never reaches that. */
function add(state: State, policy: Policy, at: number, cost: number, counted: number): number {
  const bucket = bucketOf(policy, at)
  if (cost < 0) return giveBack(state, policy, bucket, -cost)
  const added = Math.min(cost, Math.max(0, 2 * policy.limit - counted))
  putIn(state, policy, bucket, added)
  return added
}

/** Charges `cost` where it fits beside what counts at `now`, and shows the key as it stands then. */
function takeNow(
  state: State,
  policy: Policy,
  now: number,
  cost: number,
  counted: number,
  view: View,
): boolean {
  if (counted + cost > policy.limit) {
    show(state, policy, now, counted, view)
    return false
  }
  const bucket = bucketOf(policy, now)
  putIn(state, policy, bucket, cost)
  view.remaining = policy.limit - counted - cost
  view.resetAt = (bucket + policy.buckets + 1) * width(policy)
  return true
}

function putIn(state: State, policy: Policy, bucket: number, units: number): void {
  slideTo(state, policy, bucket)
  const cell = cellOf(policy, bucket)
  state.set(cell, state.get(cell) + units)
  state.set(TOTAL, state.get(TOTAL) + units)
}

function show(state: State, policy: Policy, now: number, counted: number, view: View): void {
  view.remaining = Math.max(0, policy.limit - counted)
  view.resetAt = counted === 0 ? now : emptyAt(state, policy)
}

/** Takes units out of the newest buckets at or before `bucket`. */
function giveBack(state: State, policy: Policy, bucket: number, cost: number): number {
  const newest = state.get(NEWEST)
  const oldest = Math.max(newest, bucket) - policy.buckets
  let given = 0
  for (let b = Math.min(bucket, newest); given < cost && b >= oldest; b--) {
    given += takeOut(state, policy, b, cost - given)
  }
  return given
}

/** Takes up to `units` out of a bucket; returns how many were there. */
function takeOut(state: State, policy: Policy, bucket: number, units: number): number {
  const count = countOf(state, policy, bucket)
  const taken = Math.min(units, count)
  if (taken === 0) return 0
  state.set(cellOf(policy, bucket), count - taken)
  state.set(TOTAL, state.get(TOTAL) - taken)
  return taken
}

/** Makes `bucket` the newest and empties those that fell out on the way. */
function slideTo(state: State, policy: Policy, bucket: number): void {
  const newest = state.get(NEWEST)
  if (bucket <= newest) return
  const total = totalAt(state, policy, bucket)
  for (let b = Math.max(newest + 1, bucket - policy.buckets); b <= bucket; b++)
    state.set(cellOf(policy, b), 0)
  state.set(NEWEST, bucket)
  state.set(TOTAL, total)
}

/** Sum of the N+1 buckets that end with `bucket`: the running total less what fell out since. */
function totalAt(state: State, policy: Policy, bucket: number): number {
  const newest = state.get(NEWEST)
  if (bucket - policy.buckets > newest) return 0
  let total = state.get(TOTAL)
  for (let b = newest - policy.buckets; b < bucket - policy.buckets; b++) total -= countOf(state, policy, b)
  return total
}

/** Instant at which the last bucket that holds anything is gone. */
function emptyAt(state: State, policy: Policy): number {
  let bucket = state.get(NEWEST)
  while (countOf(state, policy, bucket) === 0) bucket--
  return (bucket + policy.buckets + 1) * width(policy)
}

function countOf(state: State, policy: Policy, bucket: number): number {
  const newest = state.get(NEWEST)
  return bucket > newest || bucket < newest - policy.buckets ? 0 : state.get(cellOf(policy, bucket))
}

function cellOf(policy: Policy, bucket: number): number {
  const slot = bucket % (policy.buckets + 1)
  return COUNTS + (slot < 0 ? slot + policy.buckets + 1 : slot) // below 0 only in the first window after the epoch
}

function bucketOf(policy: Policy, instant: number): number {
  return Math.floor(instant / width(policy))
}

/** Whole ticks since the newest bucket began. */
function ticksInto(policy: Policy, instant: number): number {
  return Math.floor((instant % width(policy)) / policy.tick)
}

function width(policy: Policy): number {
  return policy.window / policy.buckets
}

const cells = (policy: Policy): number => COUNTS + policy.buckets + 1

/** whole: what is served in a span of one window was booked in a span that is longer by the ttl. */
const lease: Lease = {
  book: (policy, ttlMs) => policy.with({ window: longer(policy, ttlMs, 1000) }),
  end: noEnd,
}

/**
 * weighted: in a span of length s was served what was booked in s + ttl, at most limit' * (1 + (s + ttl) / window') with
 * window' = window + ttl. That is no more than limit * (1 + s / window) for limit' = limit * window' / (window' + ttl).
 */
const leaseFading: Lease = {
  book(policy, ttlMs) {
    const parts = policy.windowMs + ttlMs > 3_600_000 ? 1 : 1000
    const window = longer(policy, ttlMs, parts)
    const limit = Number((BigInt(policy.limit) * BigInt(window)) / BigInt(window + ttlMs))
    return limit < 1 ? undefined : policy.with({ limit, window })
  },
  end: noEnd,
}

/** The window, in milliseconds of `ticks` each, longer by `byMs` and rounded up until the buckets divide it. */
function longer({ windowMs, buckets }: Policy, byMs: number, ticks: number): number {
  let window = windowMs + byMs
  while ((window * ticks) % buckets !== 0) window++
  return window
}

export const algorithm: Algorithm = {
  name: 'sliding-window',
  ring: false,
  cells,
  earliest,
  admit,
  view,
  take,
  release,
  lease,
  check,
}

export const fading: Algorithm = {
  name: 'sliding-window-weighted',
  ring: false,
  cells,
  earliest: earliestFading,
  admit: admitFading,
  view: viewFading,
  take: takeFading,
  release,
  lease: leaseFading,
  check: checkFading,
}

/** The options that lead to shapes of their own; the conformance kit runs every law on each. @public */
export const variants: readonly Partial<SlidingWindowOptions>[] = [
  {},
  { buckets: 1 },
  { count: 'weighted' },
  { count: 'weighted', buckets: 1 },
]
