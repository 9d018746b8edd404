import { latest } from '../instant.js'
import { type Model, type Options, type Rule, ticksOf } from '../rule.js'
import { model as log } from './sliding-log.js'

/**
 * Sliding window of N buckets aligned to the Unix epoch, each W/N wide. At an instant in bucket k the buckets k-N..k
 * count. 'whole': all of them fully. 'weighted': bucket k-N by the part of it that the window still covers,
 * (w-e)/w, where w is a bucket's width and e the time since bucket k began, both in ticks, e rounded down. A refund
 * empties the newest buckets at or before its instant first, a release its charge's bucket while that counts. A charge
 * saturates when what counts at its instant reaches 2 x limit, so that it is never lost while anything remains; it never
 * lowers what is there.
 */
export const model: Model<Buckets> = {
  refunds: 'newest until now',
  variants: [{ buckets: 1 }, { count: 'weighted' }, { count: 'weighted', buckets: 1 }],
  draws: [1, 2, 3, 5, 60].map((buckets) => ({ buckets })),
  multiplied: ({ count }) => count === 'weighted',

  /**
   * The state that all writes to a key leave, counted one after the other: the units in each bucket, by its number from the Unix
   * epoch on. An admission adds its cost to the bucket of its instant, a charge no more than is free below twice the limit
   * (`free`). A refund empties the newest buckets first; a release takes units out of the bucket of its charge (`own`), unless
   * that is older than any that count.
   */
  recount(writes) {
    const buckets: Buckets = new Map()
    for (const { kind, at, cost, charge, rule } of writes) {
      const bucket = at / width(rule)
      if (kind === 'refund') giveBack(buckets, bucket, cost)
      else if (kind === 'release') {
        const own = charge!.at / width(rule)
        const held = buckets.get(own) ?? 0n
        if (own >= latest(bucket, newest(buckets)) - count(rule)) {
          buckets.set(own, held > cost ? held - cost : 0n)
        }
      } else {
        const free = 2n * rule.limit - counted(buckets, rule, at)
        const added = kind === 'admit' || cost < free ? cost : free
        if (added > 0n) buckets.set(bucket, (buckets.get(bucket) ?? 0n) + added)
      }
    }
    return buckets
  },

  room: (buckets, rule, instant) => rule.limit - counted(buckets, rule, instant),

  /**
   * The units that a refund or release could still take out at an instant: all of those buckets that count then, the oldest with
   * its full units even where it counts in part. With a booking ahead the buckets are those that count at its instant.
   */
  kept(buckets, rule, instant) {
    const last = latest(newest(buckets), instant / width(rule))
    return unitsIn(buckets, last - count(rule), last)
  },

  /**
   * The most units that may be admitted from one instant to another, both included, in microseconds: what the algorithm promises.
   * Where buckets count whole, any N + 1 neighbours (a window has N) hold at most `limit`, so the buckets that the span touches
   * are cut into groups of N + 1, rounded up. Where the oldest is weighted, a span of at most a window holds limit x (1 + span /
   * window). In a longer one any N neighbours hold at most `limit`, as they count in full beside the one before them.
   */
  bound(rule, from, to) {
    if (rule.options.count !== 'weighted') {
      const touched = to / width(rule) - from / width(rule) + 1n
      return rule.limit * ((touched + count(rule)) / (count(rule) + 1n))
    }
    const span = to - from
    if (span <= rule.window) return rule.limit + (rule.limit * span) / rule.window
    return rule.limit * ((span + rule.window - 1n) / rule.window + 1n)
  },

  /** The options under which leases are charged: a window longer by `ttl`; if weighted, of a smaller limit, undefined below 1. */
  leased(options, ttl) {
    const longer = divisible({ ...options, window: options.window + ttl })
    if (options.count !== 'weighted') return longer
    const least = Math.floor((options.limit * longer.window) / (longer.window + ttl))
    return least < 1 ? undefined : { ...longer, limit: least }
  },

  /** Buckets may lie elsewhere in a longer window: what is promised of whole ones is the limit in every span of the window. */
  leasedBound(rule, from, to) {
    return (rule.options.count === 'weighted' ? model : log).bound(rule, from, to)
  },
}

/** The options with their window, in milliseconds, rounded up until it can be divided into the buckets evenly. */
function divisible(options: Options): Options {
  const ticks = (options.window * 1000) / Number(ticksOf(model, options))
  const fits = ticks % (options.buckets ?? 10) === 0
  return fits ? options : divisible({ ...options, window: options.window + 1 })
}

type Buckets = Map<bigint, bigint>

const DEFAULT_BUCKETS = 10

/** How many buckets a window has. */
function count({ options }: { readonly options: Options }): bigint {
  return BigInt(options.buckets ?? DEFAULT_BUCKETS)
}

/** The width of a bucket in microseconds. */
function width(rule: Rule): bigint {
  return rule.window / count(rule)
}

/**
 * The units that count at an instant, in microseconds: those of the bucket that it lies in and of the N before it, N to a window.
 * With 'weighted' the oldest of them counts by the share that the window still covers, (wide - elapsed) / wide in ticks, rounded
 * up in favour of the limit.
 */
function counted(buckets: Buckets, rule: Rule, instant: bigint): bigint {
  const newest = instant / width(rule)
  const oldest = newest - count(rule)
  if (rule.options.count !== 'weighted') return unitsIn(buckets, oldest, newest)
  const elapsed = (instant - newest * width(rule)) / rule.tick
  const wide = width(rule) / rule.tick
  const fading = (buckets.get(oldest) ?? 0n) * (wide - elapsed)
  return unitsIn(buckets, oldest + 1n, newest) + (fading + wide - 1n) / wide
}

/** The number of the newest bucket of a key, which may be that of a booking ahead of now; 0 without any. */
function newest(buckets: Buckets): bigint {
  return latest(0n, ...buckets.keys())
}

/** The units in the buckets with the numbers `from` to `to`, both included. */
function unitsIn(buckets: Buckets, from: bigint, to: bigint): bigint {
  let units = 0n
  for (const [bucket, held] of buckets) if (bucket >= from && bucket <= to) units += held
  return units
}

/**
 * Takes up to `cost` units out of the buckets, from the newest at or before the bucket `now` back to the oldest; later ones
 * belong to bookings and stay. What the buckets do not have is not given back.
 */
function giveBack(buckets: Buckets, now: bigint, cost: bigint): void {
  const newestFirst = [...buckets.keys()].filter((bucket) => bucket <= now).sort((a, b) => (a < b ? 1 : -1))
  for (const bucket of newestFirst) {
    const held = buckets.get(bucket)!
    const given = held < cost ? held : cost
    buckets.set(bucket, held - given)
    cost -= given
  }
}
