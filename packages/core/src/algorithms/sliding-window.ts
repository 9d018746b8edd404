import { factory, LARGEST_PRODUCT, POLICY, Policy, windowOf } from './contract/policy.js'
import type { Algorithm, PolicyFactory, PolicyOptions, View } from './contract/policy.js'
import type { State } from './contract/state.js'
import { expectedButGot, PolicyError } from '../values/errors.js'
import { type DeclarationOf, oneOf, whole } from '../values/options.js'

/*
 * The window slides over N buckets of equal width, aligned to the Unix epoch. The N+1 buckets that (t - window, t] touches are
 * kept, by their number modulo N+1, with their total. `whole` counts all of them in full, which never admits more than `limit`
 * and loses up to one bucket of rate. `weighted` counts the oldest one by the part that the window still covers, as if its calls
 * had been spread evenly (the two-counter form is the case N = 1, known from the Cloudflare blog, 2017).
 */

/** The cells: number of the newest bucket, total of the N+1 buckets that end with it, then their counts. */
const NEWEST = 0
const TOTAL = 1
const COUNTS = 2

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

const SLIDING_WINDOW = {
  ...POLICY,
  buckets: whole(1, 1000, 10, 'INVALID_BUCKETS'),
  count: oneOf(['whole', 'weighted'], 'whole'),
} satisfies DeclarationOf<SlidingWindowOptions>

/**
 * A window that slides over N buckets, equal parts of it whose units are counted apart.
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
export const slidingWindow: PolicyFactory<SlidingWindowOptions> = /* @__PURE__ */ factory(
  'slidingWindow',
  SLIDING_WINDOW,
  ({ buckets, count, ...settings }) => {
    const isWeighted = count === 'weighted'
    return new Policy(isWeighted ? weighted : inWhole, settings, { buckets, multiplied: isWeighted })
  },
)

/** The algorithm of `count: 'whole'`. */
const inWhole = {
  name: 'sliding-window',
  ring: false,
  cells: ({ buckets }) => COUNTS + buckets + 1,

  /**
   * Sliding window: returns the first instant from `from` on, in microseconds, at which `cost` units fit; Infinity for a cost
   * above the limit. The N+1 buckets that the window touches count in full (`total`). They leave it one by one, the oldest first,
   * until enough units are gone; the cost fits from the start of the bucket that comes N after the oldest one still counted.
   */
  earliest(state, policy, from, cost) {
    if (cost > policy.limit) return Infinity
    let oldest = bucketOf(policy, from) - policy.buckets
    let total = totalAt(state, policy, oldest + policy.buckets)
    if (total + cost <= policy.limit) return from
    while (total + cost > policy.limit) total -= countOf(state, policy, oldest++)
    return (oldest + policy.buckets) * width(policy)
  },

  /**
   * Sliding window: charges `cost` units in the bucket (a part of the window) of the instant `at`. A charge that was not checked
   * first raises all that counts to at most twice the limit. A negative cost takes units out of the newest buckets. Returns the
   * units that took effect.
   */
  admit(state, policy, at, cost) {
    const bucket = bucketOf(policy, at)
    if (cost < 0) return refund(state, policy, bucket, -cost)
    const added = Math.min(cost, Math.max(0, 2 * policy.limit - countedAt(state, policy, at)))
    record(state, policy, bucket, added)
    return added
  },

  /** Fills `view` for `now`: units left of the limit, and the instant at which the newest bucket with units leaves the window. */
  view(state, policy, now, view) {
    show(state, policy, now, countedAt(state, policy, now), view)
  },

  /**
   * Sliding window: charges `cost` units at `now` if they fit beside the `counted` ones, and fills `view` with the units left and
   * the instant at which all are back. `record` adds to the newest bucket, so it returns that instant: the bucket leaves the
   * window last. Returns `now` if the cost was charged, otherwise the instant at which it will fit: Infinity if never.
   */
  take(state, policy, now, cost, view) {
    const counted = countedAt(state, policy, now)
    if (counted + cost <= policy.limit) {
      view.remaining = policy.limit - counted - cost
      view.resetAt = record(state, policy, bucketOf(policy, now), cost)
      return now
    }
    show(state, policy, now, counted, view)
    return policy.algorithm.earliest(state, policy, now, cost)
  },

  /**
   * Sliding window: gives back up to `units` units of a charge: takes them out of the bucket (a part of the window) in which the
   * charge was counted, unless that has left the window. Returns how many the bucket still had.
   */
  release(state, policy, now, charge, units) {
    const bucket = bucketOf(policy, charge.at)
    if (bucket < bucketOf(policy, now) - policy.buckets) return 0
    return takeFromBucket(state, policy, bucket, units)
  },

  /**
   * Whether calls can have left this state; false means that it is corrupt. Its newest bucket, by its number, must not be later than
   * that of `latest`, the last write or booking, and its running TOTAL must be the sum of all N+1 buckets.
   */
  isValid(state, policy, latest) {
    let sum = 0
    for (let i = 0; i <= policy.buckets; i++) sum += state.get(COUNTS + i)
    return state.get(NEWEST) <= bucketOf(policy, latest) && state.get(TOTAL) === sum
  },

  bounds: {
    // Any N+1 buckets in a row hold at most the limit, and a span may begin at the end of a bucket.
    most: (policy, span) => {
      const touched = Math.ceil((span - 1) / width(policy)) + 1
      return policy.limit * Math.ceil(touched / (policy.buckets + 1))
    },
    // A call counts until its whole bucket has left the window.
    reach: (policy) => policy.window + width(policy),
    scale: windowOf,
  },

  leasing: {
    /**
     * The policy under which a lease is taken: units charged now and served within `ttlMs` milliseconds. Units that are served in
     * a span of one window were charged in a span that is longer by the ttl, so the window is longer by it.
     */
    book: (policy, ttlMs) => policy.with({ window: `${longerWindow(policy, ttlMs, 1000)}ms` }),
    end: () => Infinity,
  },

  /**
   * Refuses a number of buckets that does not divide the window into whole ticks, which are microseconds, or milliseconds for a
   * weighted window above an hour: every bucket begins at a whole tick.
   * @throws {PolicyError} INVALID_BUCKETS.
   */
  check({ windowTicks, tick, buckets }) {
    if (windowTicks % buckets === 0) return
    const unit = tick === 1 ? 'microseconds' : 'milliseconds'
    const bound = `buckets must divide the window of ${windowTicks} ${unit}`
    throw expectedButGot(PolicyError, 'INVALID_BUCKETS', bound, buckets)
  },
} satisfies Algorithm

/** The algorithm of `count: 'weighted'`. */
const weighted: Algorithm = {
  ...inWhole,
  name: 'sliding-window-weighted',
  bounds: {
    ...inWhole.bounds,
    // Any N buckets in a row hold at most the limit, and a window touches N+1 of which the oldest fades evenly.
    most: ({ limit, window }, span) =>
      span > window
        ? limit * (Math.ceil((span - 1) / window) + 1)
        : limit + Math.floor((limit * (span - 1)) / window),
  },

  /**
   * Weighted sliding window: returns the first instant from `from` on, in microseconds, at which `cost` units fit; Infinity for a
   * cost above the limit. `total` has all buckets in full, and `over` is what it exceeds the limit by with the cost, in
   * units x ticks. The oldest bucket counts for less with each tick, as less of it lies in the window: after all of its `ticks`
   * it has faded entirely. If that does not suffice, the next bucket becomes the oldest, and so on.
   */
  earliest(state, policy, from, cost) {
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
  },

  leasing: {
    /**
     * The policy under which a lease is taken: units charged now and served within `ttlMs` milliseconds; undefined if its limit
     * would be below 1. Units that are served in a span of length s were charged in a span of s + ttl, which admits at most
     * limit' * (1 + (s + ttl) / window') with window' = window + ttl. That does not exceed limit * (1 + s / window) for limit' =
     * limit * window' / (window' + ttl). The returned policy has limit' and window'. A millisecond of it has `ticks` ticks.
     */
    book(policy, ttlMs) {
      const ticks = policy.windowMs + ttlMs > 3_600_000 ? 1 : 1000
      const window = longerWindow(policy, ttlMs, ticks)
      const limit = Number((BigInt(policy.limit) * BigInt(window)) / BigInt(window + ttlMs))
      return limit < 1 ? undefined : policy.with({ limit, window: `${window}ms` })
    },
    end: () => Infinity,
  },

  /**
   * Refuses buckets that do not divide the window, and a limit whose products of units and the ticks of a bucket, by which the
   * oldest bucket is weighted, would not be exact.
   * @throws {PolicyError} INVALID_BUCKETS or CAPACITY_TOO_LARGE.
   */
  check(policy) {
    inWhole.check(policy)
    // The N+1 buckets together hold up to four times the limit: twice that counts, and as much that has faded.
    const largest = Math.floor(LARGEST_PRODUCT / 2 / (policy.windowTicks / policy.buckets))
    if (policy.limit <= largest) return
    const advice = "(use more buckets, count: 'whole', or calendarWindow)"
    const bound = `limit must be at most ${largest} for weighted buckets of this width ${advice}`
    throw expectedButGot(PolicyError, 'CAPACITY_TOO_LARGE', bound, policy.limit)
  },
}

/**
 * Returns the length, in milliseconds, of a window that is at least `byMs` longer than the policy's: the first that its buckets
 * divide into whole ticks. `ticks` is how many ticks a millisecond has, 1000 or 1.
 */
function longerWindow({ windowMs, buckets }: Policy, byMs: number, ticks: number): number {
  let window = windowMs + byMs
  while ((window * ticks) % buckets !== 0) window++
  return window
}

/**
 * Fills `view` for a key of which `counted` units count at `now`: what they leave of the limit, and the instant at which all
 * have left the window, `now` if there are none.
 */
function show(state: State, policy: Policy, now: number, counted: number, view: View): void {
  view.remaining = policy.limit - counted
  view.resetAt = counted === 0 ? now : emptyAt(state, policy)
}

/**
 * Adds units to the window's bucket of this number, which is the newest from then on and may not lie before the newest so far.
 * Returns the instant at which that bucket leaves the window.
 */
function record(state: State, policy: Policy, bucket: number, units: number): number {
  slideTo(state, policy, bucket)
  const cell = cellOf(policy, bucket)
  state.set(cell, state.get(cell) + units)
  state.set(TOTAL, state.get(TOTAL) + units)
  return goneAt(policy, bucket)
}

/**
 * Gives back the newest units of a key, up to `cost`, and returns how many there were. Takes them out of bucket after bucket,
 * from number `bucket` (that of now) to older ones. Later buckets stay: they are booked for calls that wait for their turn.
 */
function refund(state: State, policy: Policy, bucket: number, cost: number): number {
  const newest = state.get(NEWEST)
  const oldest = Math.max(newest, bucket) - policy.buckets
  let given = 0
  for (let b = Math.min(bucket, newest); given < cost && b >= oldest; b--) {
    given += takeFromBucket(state, policy, b, cost - given)
  }
  return given
}

/**
 * Takes up to `units` out of the bucket of this number, and out of TOTAL, the running total of all buckets. Returns how many the
 * bucket had; 0 for a bucket that is not kept.
 */
function takeFromBucket(state: State, policy: Policy, bucket: number, units: number): number {
  const count = countOf(state, policy, bucket)
  const taken = Math.min(units, count)
  if (taken === 0) return 0
  state.set(cellOf(policy, bucket), count - taken)
  state.set(TOTAL, state.get(TOTAL) - taken)
  return taken
}

/**
 * Makes the bucket of this number the newest, unless a later one is. The N+1 cells are used in turn: this bucket, and those before it
 * that saw no charge, take the cells of buckets that leave the window, and begin at 0. TOTAL, the running total, loses the units of
 * the buckets that leave.
 */
function slideTo(state: State, policy: Policy, bucket: number): void {
  const newest = state.get(NEWEST)
  if (bucket <= newest) return
  const total = totalAt(state, policy, bucket)
  for (let b = Math.max(newest + 1, bucket - policy.buckets); b <= bucket; b++)
    state.set(cellOf(policy, b), 0)
  state.set(NEWEST, bucket)
  state.set(TOTAL, total)
}

/**
 * Returns the units that count at `instant`. `total` has the N+1 buckets that the window touches, each in full, and is the answer
 * for whole counting. Weighted counting takes off what has `faded` of the oldest bucket: its units by the share of it, in ticks,
 * that the window has left already, rounded down.
 */
function countedAt(state: State, policy: Policy, instant: number): number {
  const newest = bucketOf(policy, instant)
  const total = totalAt(state, policy, newest)
  if (policy.algorithm.name === inWhole.name) return total
  const faded = countOf(state, policy, newest - policy.buckets) * ticksInto(policy, instant)
  return total - Math.floor(faded / (policy.windowTicks / policy.buckets))
}

/**
 * Returns the units in the N+1 buckets that end with `bucket`. TOTAL, the running total, has those that end with the newest one
 * (NEWEST), so the buckets that have left the window since are taken off; 0 if all have.
 */
function totalAt(state: State, policy: Policy, bucket: number): number {
  const newest = state.get(NEWEST)
  if (bucket - policy.buckets > newest) return 0
  let total = state.get(TOTAL)
  for (let b = newest - policy.buckets; b < bucket - policy.buckets; b++) total -= countOf(state, policy, b)
  return total
}

/** The instant, in microseconds, at which the window is empty: when the newest bucket that still has units leaves it. */
function emptyAt(state: State, policy: Policy): number {
  const newest = state.get(NEWEST)
  let bucket = newest
  while (bucket > newest - policy.buckets && countOf(state, policy, bucket) === 0) bucket--
  return goneAt(policy, bucket)
}

/** The instant, in microseconds, at which the bucket of this number leaves the window: N buckets after its own end. */
function goneAt(policy: Policy, bucket: number): number {
  return (bucket + policy.buckets + 1) * width(policy)
}

/** The units in the bucket of this number; 0 if it has left the N+1 buckets that are kept, or is later than the newest. */
function countOf(state: State, policy: Policy, bucket: number): number {
  const newest = state.get(NEWEST)
  return bucket > newest || bucket < newest - policy.buckets ? 0 : state.get(cellOf(policy, bucket))
}

/** The cell of a bucket. Buckets are numbered since 1970, and N+1 cells are used in turn. */
function cellOf(policy: Policy, bucket: number): number {
  const slot = bucket % (policy.buckets + 1)
  return COUNTS + (slot < 0 ? slot + policy.buckets + 1 : slot) // below 0 only in the first window after the Unix epoch
}

/** The number of the bucket in which an instant lies. Buckets are numbered from the Unix epoch on. */
function bucketOf(policy: Policy, instant: number): number {
  return Math.floor(instant / width(policy))
}

/** The whole ticks since the bucket of `instant` began: as much of the oldest bucket has left the window. */
function ticksInto(policy: Policy, instant: number): number {
  return Math.floor((instant - bucketOf(policy, instant) * width(policy)) / policy.tick)
}

/** Microseconds in a bucket. */
function width(policy: Policy): number {
  return policy.window / policy.buckets
}
