import { copiedText } from '@sluice/core/internal'

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
   * Counts one item of a key. A key that is not held gets a free place, or else replaces the key with the smallest count. The map
   * may still have a replaced key, whose entry has another key by now; so the entry's own key is compared.
   */
  add(key: string): void {
    this.#total++
    const entry = this.#entries.get(key)
    if (entry?.key === key) this.#raise(entry)
    else if (this.#held < this.size) this.#insert(key)
    else this.#replace(key)
  }

  /**
   * The keys that are held, with their counts and possible errors, in no order. The map still has keys that were
   * replaced, whose entry has another key by now; they are left out.
   */
  *[Symbol.iterator](): IterableIterator<KeyCount> {
    for (const [key, entry] of this.#entries) {
      if (entry.key === key) yield { key, count: entry.bucket.count, error: entry.error }
    }
  }

  /** Takes up a new key with the count 1. It is copied, because a text cut out of another keeps that in memory. */
  #insert(newKey: string): void {
    const key = copiedText(newKey)
    this.#held++
    const bucket = this.#bucketFor(1, undefined)
    this.#entries.set(key, this.#link({ key, error: 0, bucket, before: undefined, after: undefined }))
  }

  /**
   * Gives the entry with the smallest count to a new key. The count stays, and becomes the possible error: the new key may have come
   * up to that many times before. Then the count is raised by one. The former key stays in the map for now, with an entry that has
   * another key: such keys are removed together when the map has more than 8 times as many keys as there are places.
   */
  #replace(newKey: string): void {
    const key = copiedText(newKey)
    const entry = this.#least!.first!
    entry.key = key
    entry.error = entry.bucket.count
    this.#entries.set(key, entry)
    if (this.#entries.size > MOST_REPLACED * this.size) this.#forgetReplaced()
    this.#raise(entry)
  }

  /** Removes all replaced keys from the map. To delete each as it is replaced would take twice the time. */
  #forgetReplaced(): void {
    const entries = new Map<string, Entry>()
    for (const [key, entry] of this.#entries) if (entry.key === key) entries.set(key, entry)
    this.#entries = entries
  }

  /**
   * Raises an entry's count by 1. Entries of one count share a bucket, so the entry moves to the bucket of the next
   * count. An entry that is alone in its bucket raises the bucket itself, unless the next count has a bucket already. A
   * bucket that becomes empty is removed.
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
   * The bucket of the entries that have this count, made if there is none. Buckets form an ascending list: `below` is the
   * one before it, or undefined if it is the first. Only the bucket right behind `below` can have the count.
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

  /** Puts an entry first into the list of its bucket, the entries of equal counts, and returns the entry. */
  #link(entry: Entry): Entry {
    const { bucket } = entry
    entry.before = undefined
    entry.after = bucket.first
    if (bucket.first) bucket.first.before = entry
    bucket.first = entry
    return entry
  }

  /** Takes an empty bucket out of the ascending list. If it was the first, the one above has the smallest count now. */
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

/** Takes an entry out of the list of its bucket, which is linked in both directions, so that it takes constant time. */
function unlink(entry: Entry): void {
  const { bucket, before, after } = entry
  if (before) before.after = after
  else bucket.first = after
  if (after) after.before = before
}
