import { latest } from '../instant.js'
import type { Model, Options, Rule } from '../rule.js'

/**
 * Sliding window of N buckets aligned to the Unix epoch, each W/N wide. At an instant in bucket k the buckets k-N..k
 * count. 'whole': all of them fully. 'weighted': bucket k-N by the part of it that the window still covers,
 * (w-e)/w, where w is a bucket's width and e the time since bucket k began, both in ticks, e rounded down. A refund
 * empties the newest buckets at or before its instant first, a release its charge's bucket while that counts. A charge saturates when what counts at its instant
 * reaches 2 x limit, so that it is never lost while anything remains; it never lowers what is there.
 */
export const model: Model<Buckets> = {
  refunds: 'newest until now',
  variants: [{ buckets: 1 }, { count: 'weighted' }, { count: 'weighted', buckets: 1 }],
  draws: [1, 2, 3, 5, 60].map((buckets) => ({ buckets })),
  multiplied: ({ count }) => count === 'weighted',

  /** The state that all writes to a key leave, counted one after the other: the units in each bucket, by its number. */
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

  /** The units that a later give-back could still take out at an instant: of the buckets that count then, whole. */
  kept(buckets, rule, instant) {
    const last = latest(newest(buckets), instant / width(rule))
    return unitsIn(buckets, last - count(rule), last)
  },

  /** The most units that may be admitted from one instant to another, both included: what the algorithm promises. */
  bound(rule, from, to) {
    if (rule.options.count !== 'weighted') {
      const touched = to / width(rule) - from / width(rule) + 1n
      return rule.limit * ((touched + count(rule)) / (count(rule) + 1n))
    }
    // L(1+|I|/W) holds up to one window; a longer span is cut into windows.
    const windows = (to - from) / rule.window
    const rest = (to - from) % rule.window
    return rule.limit * (2n * windows + 1n) + (rule.limit * rest) / rule.window
  },
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

/** Units that count at an instant, rounded up. */
function counted(buckets: Buckets, rule: Rule, instant: bigint): bigint {
  const newest = instant / width(rule)
  const oldest = newest - count(rule)
  if (rule.options.count !== 'weighted') return unitsIn(buckets, oldest, newest)
  const elapsed = (instant - newest * width(rule)) / rule.tick
  const wide = width(rule) / rule.tick
  const fading = (buckets.get(oldest) ?? 0n) * (wide - elapsed)
  return unitsIn(buckets, oldest + 1n, newest) + (fading + wide - 1n) / wide
}

/** The number of the newest bucket that holds units; 0 without any. */
function newest(buckets: Buckets): bigint {
  return latest(0n, ...buckets.keys())
}

/** The units in the buckets from `from` to `to`. */
function unitsIn(buckets: Buckets, from: bigint, to: bigint): bigint {
  let units = 0n
  for (const [bucket, held] of buckets) if (bucket >= from && bucket <= to) units += held
  return units
}

/** Takes up to `cost` units out of the newest buckets at or before `now`. */
function giveBack(buckets: Buckets, now: bigint, cost: bigint): void {
  const newestFirst = [...buckets.keys()].filter((bucket) => bucket <= now).sort((a, b) => (a < b ? 1 : -1))
  for (const bucket of newestFirst) {
    const held = buckets.get(bucket)!
    const given = held < cost ? held : cost
    buckets.set(bucket, held - given)
    cost -= given
  }
}
