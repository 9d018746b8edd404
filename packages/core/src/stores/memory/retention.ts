import { CHUNK_SLOTS, type Chunk, type Chunks } from './chunks.js'
import { BANNED, DENIED, EXHAUSTED, FULL, fullAt, rankOf } from './rank.js'
import type { Table } from './table.js'

/*
 * Which keys of a store may go. A key whose allowance is full again says nothing that an absent key would not, so it
 * is freed by a hand that walks the slots of all tables a few at a time. When the store is full of keys that still say
 * something, the one of a sample goes that ranks lowest (rank.ts). So a flood of new keys sets a caller free only where
 * nothing tells that caller apart from the flood.
 */
export class Retention {
  readonly #chunks: Chunks
  /** The hand: a chunk by its place in the list, and a slot in it. */
  #chunk = -1
  #slot = 0
  /** Whether the hand has freed nothing since its round began. After such a round it rests. */
  #isBarren = false
  #restUntil = 0
  readonly #newest: Place = { table: undefined, slot: 0 }
  readonly #victim: Place = { table: undefined, slot: 0 }
  /** The lowest rank found of late: a key that ranks no higher goes without a look for another one. */
  #usual = UNKNOWN
  #evictions = 0
  #random = 0x9e3779b9

  constructor(chunks: Chunks) {
    this.#chunks = chunks
  }

  /** A key was added. */
  added(table: Table, slot: number): void {
    this.#newest.table = table
    this.#newest.slot = slot
  }

  /** Looks at the next `count` slots and frees those that are full again, at most `enough`; returns how many. */
  sweep(count: number, now: number, enough = count): number {
    let freed = 0
    for (let i = 0; i < count && freed < enough && this.#chunks.length > 0; i++) {
      const { table } = this.#step(now)
      if (table.cursor.slots.keyAt(this.#slot) === undefined) continue
      if (rankOf(table, this.#slot, now) !== FULL) continue
      table.release(this.#slot)
      this.#isBarren = false
      freed++
    }
    return freed
  }

  /** Makes room in a full store: for nothing where a key nearby is full again, else by forgetting what it returns. */
  evict(now: number, areAllBarred: () => boolean): Evicted | undefined {
    if (now >= this.#restUntil && this.sweep(NEARBY, now, 1) > 0) return undefined
    let rank = this.#sample(now)
    const isLost =
      rank >= BANNED ? !areAllBarred() || rank === Infinity : rank >= DENIED && rank > this.#usual
    if (isLost) rank = this.#walk(rank, now)
    if (this.#usual === UNKNOWN || rank < this.#usual) this.#usual = rank
    const { table, slot } = this.#victim
    const key = table!.cursor.slots.keyAt(slot)!
    const fullAgainAt = fullAt(table!, slot, now)
    table!.lose(slot)
    return rank === FULL ? undefined : { table: table!, key, fullAgainAt, wasExhausted: rank >= EXHAUSTED }
  }

  /** Draws keys from all tables; the lowest rank among them, that of `#victim`. */
  #sample(now: number): number {
    if (++this.#evictions % ROUND === 0) this.#usual = UNKNOWN
    let least = Infinity
    for (let tries = 0, seen = 0; tries < MOST_TRIES; tries++) {
      if (
        least <= this.#usual ||
        seen >= (least >= EXHAUSTED || this.#usual === UNKNOWN ? LONG_SAMPLE : SAMPLE)
      )
        break
      const chunk = this.#chunks.at(this.#below(this.#chunks.length))
      const slot = chunk.first + this.#below(CHUNK_SLOTS)
      if (!isHeld(chunk, slot)) continue
      seen++
      least = this.#prefer(chunk.table, slot, now, least)
    }
    return least
  }

  /** Walks from the newest key on, for one that ranks below `least`: a little way, or all the way if a ban had to go. */
  #walk(least: number, now: number): number {
    const { table, slot } = this.#newest
    if (table?.cursor.slots.keyAt(slot) !== undefined) {
      const rank = this.#prefer(table, slot, now, least)
      if (rank < least) return rank
    }
    let rank = least
    let seen = 0
    for (let i = 0, from = this.#below(this.#chunks.length); i < this.#chunks.length; i++) {
      const chunk = this.#chunks.at((from + i) % this.#chunks.length)
      for (let slot = chunk.first; slot < chunk.first + CHUNK_SLOTS; slot++) {
        if (!isHeld(chunk, slot)) continue
        rank = this.#prefer(chunk.table, slot, now, rank)
        if (rank < least && rank < BANNED) return rank
        if (++seen >= NEARBY_WALK && rank < BANNED) return rank
      }
    }
    return rank
  }

  /** Makes a key the victim where it ranks below `least`; returns the lower rank. */
  #prefer(table: Table, slot: number, now: number, least: number): number {
    const rank = rankOf(table, slot, now)
    if (rank >= least) return least
    this.#victim.table = table
    this.#victim.slot = slot
    return rank
  }

  /** Moves the hand on by a slot. */
  #step(now: number): Chunk {
    const chunk = this.#chunk < this.#chunks.length ? this.#chunks.at(Math.max(0, this.#chunk)) : undefined
    if (this.#chunk >= 0 && chunk && this.#slot >= chunk.first && this.#slot < lastOf(chunk)) {
      this.#slot++
      return chunk
    }
    this.#chunk = this.#chunk + 1 < this.#chunks.length ? this.#chunk + 1 : this.#newRound(now)
    const next = this.#chunks.at(this.#chunk)
    this.#slot = next.first
    return next
  }

  #newRound(now: number): number {
    if (this.#isBarren) this.#restUntil = now + REST
    this.#isBarren = true
    return 0
  }

  #below(bound: number): number {
    this.#random = (Math.imul(this.#random, 1664525) + 1013904223) >>> 0
    return Math.floor((this.#random / 2 ** 32) * bound)
  }
}

export interface Evicted {
  readonly table: Table
  readonly key: string
  readonly fullAgainAt: number
  readonly wasExhausted: boolean
}

interface Place {
  table: Table | undefined
  slot: number
}

function lastOf({ table, first }: Chunk): number {
  return Math.min(first + CHUNK_SLOTS - 1, table.cursor.slots.top)
}

function isHeld(chunk: Chunk, slot: number): boolean {
  return slot <= lastOf(chunk) && chunk.table.cursor.slots.keyAt(slot) !== undefined
}

const UNKNOWN = -1
const NEARBY = 64
/** Microseconds for which a store without a key that is full again is not searched for one. */
const REST = 1_000_000
const SAMPLE = 5
const LONG_SAMPLE = 64
/** Evictions after which the usual rank is looked for anew. */
const ROUND = 64
/** Draws, most of which miss where many tables hold a key or two each. */
const MOST_TRIES = 8192
const NEARBY_WALK = 256
