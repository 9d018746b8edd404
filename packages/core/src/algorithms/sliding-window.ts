import { type Algorithm, type Charge, Policy, type PolicyOptions, type View } from './contract/policy.js'
import { checkPolicyOptions } from './contract/replaced-options.js'
import {
  bucketOf,
  cells,
  checkBuckets,
  checkFadingBuckets,
  countOf,
  fadingAt,
  giveBack,
  holds,
  putIn,
  show,
  takeOut,
  ticksInto,
  totalAt,
  wholeAt,
  width,
} from './buckets/counts.js'
import { fadingLeasing, wholeLeasing } from './buckets/leasing.js'
import { expected, PolicyError } from '../values/errors.js'
import type { State } from './contract/state.js'

/*
 * The window slides over N buckets of equal width, aligned to the Unix epoch. The N+1 buckets that (t - window, t] touches are kept,
 * with their total. `whole` counts all of them in full, which never admits more than `limit` and loses up to one bucket of
 * rate. `weighted` counts the oldest one by the part that the window still covers, as if its calls had been spread evenly
 * (the two-counter form is the case N = 1, known from the Cloudflare blog, 2017).
 */

export interface SlidingWindowOptions extends PolicyOptions {
  /**
   * Equal parts of the window, 1 to 1000. Must divide the window into whole ticks.
   * @default 10
   */
  readonly buckets?: number
  /**
   * How the oldest bucket counts: all of it, or the part that the window still covers.
   * @default 'whole'
   */
  readonly count?: 'whole' | 'weighted'
}

/**
 * whole: at most `limit` in every span of one window; sustained rate at least limit/window * N/(N+1).
 * weighted: at most limit * (1 + s/window) in a span of length s <= window.
 * @throws {PolicyError} when a number is not positive and whole, buckets do not divide the window, or (weighted)
 * limit x bucket width passes 2^51.
 * @example
 * import { createLimiter, slidingWindow } from '@sluice/core'
 * // Never more than 100,000 in any hour, counted in 12 buckets of 5 minutes.
 * const limiter = createLimiter({ policies: [slidingWindow({ limit: 100_000, window: '1h', buckets: 12 })] })
 * const { allowed } = await limiter.consume('user:42')
 */
export function slidingWindow(options: SlidingWindowOptions): Policy {
  checkPolicyOptions(options, { buckets: true, count: true })
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

/** Gives back units of the charge's own bucket, while that counts. */
export function release(state: State, policy: Policy, now: number, charge: Charge, units: number): number {
  const bucket = bucketOf(policy, charge.at)
  if (bucket < bucketOf(policy, now) - policy.buckets) return 0
  return takeOut(state, policy, bucket, units)
}

/** A charge is capped where twice the limit counts; one that fits never reaches that. */
function add(state: State, policy: Policy, at: number, cost: number, counted: number): number {
  const bucket = bucketOf(policy, at)
  if (cost < 0) return giveBack(state, policy, bucket, -cost)
  const added = Math.min(cost, Math.max(0, 2 * policy.limit - counted))
  putIn(state, policy, bucket, added)
  return added
}

/** Charges `cost` if it fits beside `counted`, and fills `view`. Returns whether it was charged. */
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

export const algorithm: Algorithm = {
  name: 'sliding-window',
  ring: false,
  cells,
  earliest,
  admit,
  view,
  take,
  release,
  holds,
  leasing: wholeLeasing,
  check: checkBuckets,
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
  holds,
  leasing: fadingLeasing,
  check: checkFadingBuckets,
}
