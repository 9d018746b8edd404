import { ownText } from '@sluice/core/internal'

/**
 * The heaviest keys of a stream in bounded space: space-saving (Metwally, Agrawal, El Abbadi: Efficient Computation of
 * Frequent and Top-k Elements in Data Streams, 2005). It holds `size` keys with a count each. A key that is not held replaces
 * the one with the smallest count and inherits that count as its possible error. So with N items in all:
 * - `count - error <= truth <= count` for each key that is held,
 * - the smallest count is at most N / size, and a key that is not held has come at most that often.
 *
 * Entries lie in buckets of equal counts, in ascending order, so that one more of a key takes constant time. It gives up the
 * exact counts of light keys.
 */
export class SpaceSaving {
  readonly size: number
  /** By key. It also holds keys that were replaced, whose entry has another key by now, until there are too many. */
  #entries = new Map<string, Entry>()
  #held = 0
  /** The bucket of the smallest count. */
  #least: Bucket | undefined
  #total = 0

  /** `size` is how many keys are held. */
  constructor(size: number) {
    this.size = size
  }

  /** How many items the stream has had so far, of all keys. */
  get total(): number {
    return this.#total
  }

  /** The upper bound of how often a key that is not held has come: 0 until all `size` places are taken, then the smallest count. */
  get missed(): number {
    return this.#held < this.size ? 0 : this.#least!.count
  }

  /**
   * Counts one call of a key. A key that is not held takes the place of the one with the smallest count, if all are
   * taken.
   */
  add(key: string): void {
    this.#total++
    const entry = this.#entries.get(key)
    if (entry?.key === key) this.#raise(entry)
    else if (this.#held < this.size) this.#insert(key)
    else this.#replace(key)
  }

  /** The keys that are held, with their counts, in no order. Keys that were replaced are still in the map and are left out. */
  *[Symbol.iterator](): IterableIterator<KeyCount> {
    for (const [key, { key: own, bucket, error }] of this.#entries) {
      if (key === own) yield { key, count: bucket.count, error }
    }
  }

  /** Takes up a key while there is room. `ownText` copies it, as a slice would keep the whole request's text in memory. */
  #insert(counted: string): void {
    const key = ownText(counted)
    this.#held++
    const bucket = this.#bucketFor(1, undefined)
    this.#entries.set(key, this.#link({ key, error: 0, bucket, before: undefined, after: undefined }))
  }

  /**
   * Gives the entry with the smallest count to a new key. The count stays and becomes its possible error, as the key may have come
   * up to that many times before. The former key stays in the map until `#forgetReplaced`, though its entry is another's.
   */
  #replace(counted: string): void {
    const key = ownText(counted)
    const entry = this.#least!.first!
    entry.key = key
    entry.error = entry.bucket.count
    this.#entries.set(key, entry)
    if (this.#entries.size > MOST_REPLACED * this.size) this.#forgetReplaced()
    this.#raise(entry)
  }

  /** Removes replaced keys from the map of entries, all at once: to delete each as it is replaced takes twice the time. */
  #forgetReplaced(): void {
    const entries = new Map<string, Entry>()
    for (const [key, entry] of this.#entries) if (entry.key === key) entries.set(key, entry)
    this.#entries = entries
  }

  /**
   * Raises an entry's count by 1: moves the entry to the bucket of the next count. An entry that is alone in its bucket takes the bucket along, unless
   * the next count has a bucket already.
   */
  #raise(entry: Entry): void {
    const { bucket } = entry
    const { above } = bucket
    const isAlone = bucket.first === entry && entry.after === undefined
    if (isAlone && above?.count !== bucket.count + 1) {
      bucket.count++
      return
    }
    const next = this.#bucketFor(bucket.count + 1, bucket)
    unlink(entry)
    if (bucket.first === undefined) this.#remove(bucket)
    entry.bucket = next
    this.#link(entry)
  }

  /**
   * The bucket of the entries that have this count, made if there is none. `below` is the bucket that comes before it in ascending
   * order; undefined where it is the first.
   */
  #bucketFor(count: number, below: Bucket | undefined): Bucket {
    const above = below ? below.above : this.#least
    if (above?.count === count) return above
    const bucket: Bucket = { count, first: undefined, below, above }
    if (below) below.above = bucket
    else this.#least = bucket
    if (above) above.below = bucket
    return bucket
  }

  /** Puts an entry first into its bucket's list. */
  #link(entry: Entry): Entry {
    const { bucket } = entry
    entry.before = undefined
    entry.after = bucket.first
    if (bucket.first) bucket.first.before = entry
    bucket.first = entry
    return entry
  }

  /** Takes an empty bucket out of the ascending list of buckets. */
  #remove({ below, above }: Bucket): void {
    if (below) below.above = above
    else this.#least = above
    if (above) above.below = below
  }
}

const MOST_REPLACED = 8

/** How often a key came: at most `count`, and at least `count - error`. */
export interface KeyCount {
  readonly key: string
  readonly count: number
  readonly error: number
}

/** The keys ordered by their counts, the largest first. */
export function sorted(keys: readonly KeyCount[]): readonly KeyCount[] {
  return keys.toSorted((a, b) => b.count - a.count)
}

interface Entry {
  key: string
  /** The count that was inherited. */
  error: number
  bucket: Bucket
  before: Entry | undefined
  after: Entry | undefined
}

interface Bucket {
  count: number
  first: Entry | undefined
  below: Bucket | undefined
  above: Bucket | undefined
}

/** Takes an entry out of its bucket's list. */
function unlink(entry: Entry): void {
  const { bucket, before, after } = entry
  if (before) before.after = after
  else bucket.first = after
  if (after) after.before = before
}
