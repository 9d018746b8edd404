/** The rows in which an index looks a key up. */
export interface KeyedRows {
  /** The key in `row`, undefined when the row is free. */
  keyAt(row: number): string | undefined
}

/**
 * Finds the row of a key. Few keys lie in a Map. Many lie in a hash table of segments: one that is full is split in two, so that
 * no call waits until a large table is copied, as the call does that makes a Map grow. A slot holds a row and the hash of its
 * key, and the key itself is read only where the hashes are equal.
 *
 * The first slot of a key follows from its hash, and the key lies there or in one of the REACH - 1 slots behind it. A key that
 * finds no place there lies in a Map, so that keys which were made to collide cost little more than in a Map.
 */
export class KeyIndex {
  /** Undefined once the keys are in segments. */
  #few: Map<string, number> | undefined = new Map()
  /** The segment of a hash, by its lowest bits. A segment that shares fewer of them stands in several places. */
  #segments: Segment[] = []
  #mask = 0

  constructor(private readonly rows: KeyedRows) {}

  /** The row of `key`, 0 if it has none. */
  get(key: string): number {
    const few = this.#few
    return few === undefined ? this.#search(key) : (few.get(key) ?? 0)
  }

  /**
   * Looks `key` up in the segments (parts of the hash table), and returns its row, 0 if it has none. A slot is two numbers, a row
   * and the hash of its key. The search begins at the slot that follows from the hash and ends at the first free one: a key never
   * lies behind that. A key that found no slot within REACH is in the Map `misplaced`.
   */
  #search(key: string): number {
    const hash = hashOf(key)
    const { slots, misplaced } = this.#segments[hash & this.#mask]!
    let slot = firstSlotOf(hash)
    for (let n = 0; n < REACH; n++) {
      const row = slots[slot]!
      if (row === 0) break
      if (slots[slot + 1] === hash && this.rows.keyAt(row) === key) return row
      slot = (slot + 2) & LAST_SLOT
    }
    return misplaced?.get(key) ?? 0
  }

  /**
   * Adds a key that is not in the index, with its row; the table's rows must hold the key already. Up to 1,024 keys lie in a Map
   * (`few`), more of them in a hash table of segments.
   */
  add(key: string, row: number): void {
    const few = this.#few
    if (few === undefined) this.#putInSlot(key, hashOf(key), row)
    else if (few.set(key, row).size > FEW) this.#moveToSegments(few)
  }

  /**
   * Removes a key, which must be in the index with this row. It is in the Map of few keys, or else in a slot of the segment that
   * its hash names, or else in that segment's Map of keys that found no slot.
   */
  delete(key: string, row: number): void {
    if (this.#few !== undefined) return void this.#few.delete(key)
    const hash = hashOf(key)
    const segment = this.#segments[hash & this.#mask]!
    if (!segment.remove(hash, row)) segment.misplaced!.delete(key)
  }

  /**
   * Moves the keys of the Map `few` to a hash table of segments, and places each by its hash. Hashes use random numbers of this
   * process, which the first index to come here draws; until then the last of them is 0.
   */
  #moveToSegments(few: ReadonlyMap<string, number>): void {
    if (randoms[LONGEST] === 0) crypto.getRandomValues(randoms)
    this.#few = undefined
    this.#segments = [new Segment(0)]
    for (const [key, row] of few) this.#putInSlot(key, hashOf(key), row)
  }

  /**
   * Puts a key with its row into the segment that the lowest bits of its hash name. If the segment has no slot for it, it is split
   * in two, and the key is placed again. If a split would not help, because the segment has few keys and their hashes are alike, or
   * was split often enough, the key goes into the segment's Map of misplaced keys.
   */
  #putInSlot(key: string, hash: number, row: number): void {
    const segment = this.#segments[hash & this.#mask]!
    if (segment.size < MOST_KEYS && segment.put(hash, row)) return
    if (segment.size >= FEWEST_KEYS && segment.depth < DEEPEST) {
      this.#split(segment, hash)
      this.#putInSlot(key, hash, row)
    } else (segment.misplaced ??= new Map<string, number>()).set(key, row)
  }

  /**
   * Replaces a full segment by two halves. The hashes of its keys, such as `hash`, have their `depth` lowest bits in common; the
   * next bit says to which half a key goes. `#segments` has a place for each value of the lowest bits in `#mask`: a segment of which
   * fewer bits are fixed stands in several of them, which the halves share. If it stands in one alone, the list is doubled first. In
   * `slots` each row (0: none) is followed by the hash of its key; the keys in `misplaced` had found no slot, and are tried again.
   */
  #split({ slots, depth, misplaced }: Segment, hash: number): void {
    if (1 << depth > this.#mask) {
      this.#segments = this.#segments.concat(this.#segments)
      this.#mask = this.#segments.length - 1
    }
    const halves = [new Segment(depth + 1), new Segment(depth + 1)] as const
    const first = hash & ((1 << depth) - 1)
    for (let i = first; i <= this.#mask; i += 1 << depth) this.#segments[i] = halves[(i >>> depth) & 1]!
    for (let slot = 0; slot < slots.length; slot += 2) {
      const row = slots[slot]!
      if (row !== 0) this.#putInSlot(this.rows.keyAt(row)!, slots[slot + 1]!, row)
    }
    for (const [key, row] of misplaced ?? []) this.#putInSlot(key, hashOf(key), row)
  }
}

class Segment {
  /** A row and the hash of its key, in turns; row 0 where the slot is free. */
  readonly slots = new Int32Array(2 * SLOTS)
  /** Keys in the slots. */
  size = 0
  /** The rows of keys that found no place in the slots. */
  misplaced: Map<string, number> | undefined = undefined

  /** `depth`: how many of the lowest bits of the hash its keys share. */
  constructor(readonly depth: number) {}

  /**
   * Puts a row, with the hash of its key, into the first free slot of the REACH slots that begin at the place of the hash: a search
   * reads no others. A slot is two numbers, the row (from 1 on; 0 is a free slot) and the hash. Returns false if none is free.
   */
  put(hash: number, row: number): boolean {
    const { slots } = this
    let slot = firstSlotOf(hash)
    for (let n = 0; n < REACH; n++) {
      if (slots[slot] === 0) {
        slots[slot] = row
        slots[slot + 1] = hash
        this.size++
        return true
      }
      slot = (slot + 2) & LAST_SLOT
    }
    return false
  }

  /**
   * Removes `row`, whose key has this hash, from the slots. Returns whether it was there. A search ends at the first free slot,
   * so no hole may lie between the first slot of a hash and its row. Therefore each later row, up to the next free slot, moves into
   * the hole and leaves a new one, unless that would put it before its first slot. After the last slot comes the first.
   */
  remove(hash: number, row: number): boolean {
    const { slots } = this
    let hole = firstSlotOf(hash)
    for (let n = 1; slots[hole] !== row; n++) {
      if (n === REACH) return false
      hole = (hole + 2) & LAST_SLOT
    }
    for (let slot = (hole + 2) & LAST_SLOT; slots[slot] !== 0; slot = (slot + 2) & LAST_SLOT) {
      const toFirst = (slot - firstSlotOf(slots[slot + 1]!)) & LAST_SLOT
      if (toFirst < ((slot - hole) & LAST_SLOT)) continue // it would lie before its first slot
      slots[hole] = slots[slot]!
      slots[hole + 1] = slots[slot + 1]!
      hole = slot
    }
    slots[hole] = 0
    this.size--
    return true
  }
}

/**
 * Returns the index in `slots` at which the search for a key of this hash begins. It is even, as a slot is two numbers. Bits 15
 * and up choose it, since the lowest 13 have chosen the segment.
 */
function firstSlotOf(hash: number): number {
  return (hash >>> 14) & LAST_SLOT
}

/**
 * Returns the NH hash of UMAC (RFC 4418) of all characters of a key. It uses random numbers of this process, so that no caller can
 * make keys that collide, as he could for a hash that is a polynomial of the characters. Two keys have the same hash with a
 * probability of at most 2^-16. The last lines mix its bits (the finalizer of MurmurHash3).
 */
function hashOf(key: string): number {
  const { length } = key
  let hash = (randoms[LONGEST]! + length) | 0
  let i = 0
  for (; i < length - 1; i += 2) {
    const product = Math.imul(key.charCodeAt(i) + randoms[i]!, key.charCodeAt(i + 1) + randoms[i + 1]!)
    hash = (hash + product) | 0
  }
  if (i < length) hash = (hash + Math.imul(key.charCodeAt(i) + randoms[i]!, randoms[i + 1]!)) | 0
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return hash ^ (hash >>> 16)
}

/** Most characters of a key in a store: longer ones are stored as their digest. */
const LONGEST = 128
const randoms = new Int32Array(LONGEST + 1)

/** Keys that a Map finds sooner. */
const FEW = 1024
const SLOTS = 2048
const LAST_SLOT = 2 * SLOTS - 2
/** Slots that a search reads at most. */
const REACH = 32
/** Keys of a segment above which it is split, and those below which a split would not help: their hashes are alike. */
const MOST_KEYS = 0.75 * SLOTS
const FEWEST_KEYS = 0.5 * SLOTS
/** Of 2^13 segments each holds some 1,000 of the 2^23 keys of a full store. */
const DEEPEST = 13
