import { haveEqualNumbers, type Policy, type View } from '../../algorithms/contract/policy.js'
import type { Notice } from '../store.js'
import { type Chunk, CHUNK_ROWS } from './chunks.js'
import type { Table } from './table.js'

/*
 * Selects the keys that a store forgets. A key whose allowance is full again is decided like an absent key, so it is freed: a
 * clock hand walks the rows of all tables, a few at a time. If the store is full of keys that still matter, the one with the
 * lowest rank in a random sample is evicted. So a flood of new keys frees an exhausted caller only if that caller
 * ranks no higher than the flood.
 */
export class Eviction {
  /** The clock hand: the index of a chunk, and a row in it. */
  #chunk = -1
  #row = 0
  /** Whether the hand has freed nothing in this round. After such a round it rests. */
  #isBarren = false
  #restUntil = 0
  readonly #newest: KeyRow = { table: undefined, row: 0 }
  readonly #victim: KeyRow = { table: undefined, row: 0 }
  /** The lowest rank found recently. A key that ranks no higher is evicted without further search. */
  #usualRank = UNKNOWN
  #evictions = 0
  #random = 0x9e3779b9

  constructor(private readonly chunks: readonly Chunk<Table>[]) {}

  /**
   * Notes the key that was added last, by its table and row: in a flood of new keys it is likely to be one that matters little.
   */
  added(table: Table, row: number): void {
    this.#newest.table = table
    this.#newest.row = row
  }

  /**
   * Checks the next `count` rows, going round all tables, and frees the keys whose allowance is full again at `now`, at most
   * `enough` of them. Returns how many it freed.
   */
  sweep(count: number, now: number, enough = count): number {
    let freed = 0
    for (let i = 0; i < count && freed < enough && this.chunks.length > 0; i++) {
      const { table } = this.#moveSweep(now)
      if (table.cursor.rows.keyAt(this.#row) === undefined) continue
      if (rankOf(table, this.#row, now) !== FULL) continue
      table.free(this.#row)
      this.#isBarren = false
      freed++
    }
    return freed
  }

  /**
   * Frees one key of a full store. Returns it if something was lost with it, undefined if its allowance was full again. First the
   * next rows are searched for a full key, unless a whole round has just found none (`#restUntil`). Otherwise the victim is the
   * key of the lowest rank (how much would be lost with it) in a sample. If even that one matters, all keys are searched for a
   * lesser one, whose rank is best below `wanted`: it was denied and ranks above what samples usually find (`#usualRank`), or is
   * blocked, or the sample found no key (Infinity). `areAll` says when that is in vain: if all keys were blocked or held ('size'), one
   * that only a penalty blocks will do; if operators block all ('bans'), any.
   */
  evict(now: number, areAll: (of: 'size' | 'bans') => boolean): Evicted | undefined {
    if (now >= this.#restUntil && this.sweep(NEARBY, now, 1) > 0) return undefined
    let rank = this.#victimOfSample(now)
    const isBlocked = rank >= PENALIZED
    const wanted = isBlocked && areAll('size') ? BANNED : PENALIZED
    const matters = isBlocked
      ? rank >= wanted && (rank === Infinity || !areAll('bans'))
      : rank >= DENIED && rank > this.#usualRank
    if (matters) rank = this.#searchAll(rank, now, wanted)
    if (this.#usualRank === UNKNOWN || rank < this.#usualRank) this.#usualRank = rank
    const { table, row } = this.#victim
    const key = table!.cursor.rows.keyAt(row)!
    const fullAgainAt = fullAt(table!, row, now)
    table!.discard(row)
    return rank === FULL ? undefined : { table: table!, key, fullAgainAt, wasExhausted: rank >= EXHAUSTED }
  }

  /**
   * Draws random keys from all tables, and makes the one of the lowest rank (how much would be lost with it) the `#victim`. Returns
   * that rank. A sample is 5 keys, or 64 while all of them are exhausted or nothing usual is known. A rank as low as `#usualRank`, the
   * lowest of the last evictions, ends it early. Draws miss where rows are free, so their number is bounded too.
   */
  #victimOfSample(now: number): number {
    if (++this.#evictions % ROUND === 0) this.#usualRank = UNKNOWN
    let least = Infinity
    for (let tries = 0, seen = 0; tries < MOST_TRIES; tries++) {
      const most = least >= EXHAUSTED || this.#usualRank === UNKNOWN ? LONG_SAMPLE : SAMPLE
      if (least <= this.#usualRank || seen >= most) break
      const chunk = this.chunks[this.#randomBelow(this.chunks.length)]!
      const row = chunk.first + this.#randomBelow(CHUNK_ROWS)
      if (!isHeld(chunk, row)) continue
      seen++
      least = this.#considerVictim(chunk.table, row, now, least)
    }
    return least
  }

  /**
   * Searches key by key for a victim that ranks below `least`, the lowest rank of the sample, and returns the lowest rank found.
   * The key that was added last is tried first, as it is likely to be one of a flood; then rows from a random chunk on. The first
   * key that ranks below `least` and below `wanted`, the rank of penalized or banned keys, ends the search. After 256 keys the
   * sample's victim suffices, if it ranks below `wanted`; otherwise the search goes on through all keys.
   */
  #searchAll(least: number, now: number, wanted: number): number {
    const { table, row } = this.#newest
    let rank = least
    if (table?.cursor.rows.keyAt(row) !== undefined) {
      rank = this.#considerVictim(table, row, now, least)
      if (rank < least && rank < wanted) return rank
    }
    let seen = 0
    for (let i = 0, from = this.#randomBelow(this.chunks.length); i < this.chunks.length; i++) {
      const chunk = this.chunks[(from + i) % this.chunks.length]!
      for (let row = chunk.first; row < chunk.first + CHUNK_ROWS; row++) {
        if (!isHeld(chunk, row)) continue
        rank = this.#considerVictim(chunk.table, row, now, rank)
        if (rank < least && rank < wanted) return rank
        if (++seen >= NEARBY_WALK && rank < wanted) return rank
      }
    }
    return rank
  }

  /**
   * Makes the key in `row` the victim, which is to be evicted, if its rank (how much would be lost with it) is below `least`.
   * Returns the lower of both ranks.
   */
  #considerVictim(table: Table, row: number, now: number, least: number): number {
    const rank = rankOf(table, row, now)
    if (rank >= least) return least
    this.#victim.table = table
    this.#victim.row = row
    return rank
  }

  /**
   * Moves the sweep, which searches for keys whose allowance is full again, on by one row: from `#chunk` and `#row` to the next
   * row of the chunk (64 rows), to the next chunk at its end, and after the last chunk to the first. Returns the chunk it is in
   * then.
   */
  #moveSweep(now: number): Chunk<Table> {
    const chunk = this.chunks[this.#chunk]
    if (chunk && this.#row >= chunk.first && this.#row < lastOf(chunk)) {
      this.#row++
      return chunk
    }
    this.#chunk = this.#chunk + 1 < this.chunks.length ? this.#chunk + 1 : this.#newRound(now)
    const next = this.chunks[this.#chunk]!
    this.#row = next.first
    return next
  }

  /**
   * Begins a new round through all rows, and returns 0, the index of the first chunk. If the last round freed nothing, `evict`
   * sweeps no more for `REST` microseconds, as it would find nothing again.
   */
  #newRound(now: number): number {
    if (this.#isBarren) this.#restUntil = now + REST
    this.#isBarren = true
    return 0
  }

  /** A random whole number below `bound`, from a linear congruential generator, which is cheaper than Math.random. */
  #randomBelow(bound: number): number {
    this.#random = (Math.imul(this.#random, 1664525) + 1013904223) >>> 0
    return Math.floor((this.#random / 2 ** 32) * bound)
  }
}

interface Evicted {
  readonly table: Table
  readonly key: string
  readonly fullAgainAt: number
  readonly wasExhausted: boolean
}

interface KeyRow {
  table: Table | undefined
  row: number
}

/** The number of the last row of a chunk of 64 rows that was ever in use. */
function lastOf({ table, first }: Chunk<Table>): number {
  return Math.min(first + CHUNK_ROWS - 1, table.cursor.rows.top)
}

/** Whether this row of the chunk has a key's state: it was in use before, and was not freed since. */
function isHeld(chunk: Chunk<Table>, row: number): boolean {
  return row <= lastOf(chunk) && chunk.table.cursor.rows.keyAt(row) !== undefined
}

const UNKNOWN = -1
const NEARBY = 64
/** Microseconds without a search for keys that are full again, after a round that found none. */
const REST = 1_000_000
const SAMPLE = 5
const LONG_SAMPLE = 64
/** Evictions after which the usual rank is determined again. */
const ROUND = 64
/** Most draws of a sample. Most of them miss if many tables hold one or two keys each. */
const MOST_TRIES = 8192
const NEARBY_WALK = 256

/**
 * Returns the rank of a key: how much would be lost with it at `now`, under the limits it was last decided with. A key of a low rank
 * is evicted first. FULL: nothing would be lost. Below EXHAUSTED: the fraction of its allowance that is spent; LEAST if any is spent
 * only under the smallest limits of all lists, or only marks of settled reservations are kept. EXHAUSTED, plus one for each of up
 * to seven denials: the allowance is empty, or refusals are counted for a penalty. AWAITED: the key has bookings in the future or open reservations, or is held (paused).
 * PENALIZED: a penalty has blocked the key. BANNED: an operator has blocked it.
 */
function rankOf(table: Table, row: number, now: number): number {
  const { cursor, restrictions, bookings, lists } = table
  const restriction = restrictions.has(row, now) ? restrictions.lastOf(row) : undefined
  if (restriction !== undefined && restriction.blockedUntil > now)
    return restriction.isBan ? BANNED : PENALIZED
  cursor.select(row)
  const reserved = table.reserved.size > 0 ? table.reserved.get(row) : undefined
  const isReserved = reserved !== undefined && reserved.openUntil > now
  if (restriction !== undefined || bookings.lastOf(row) > now || isReserved) return AWAITED
  const policies = lists.at(cursor.rows.listOf(row))
  const spent = spentFractionOf(table, policies, now)
  if (spent >= 1 || table.refusals.forgottenAt(row) > now) return EXHAUSTED + cursor.rows.denialsOf(row)
  if (spent > 0) return spent
  if (reserved !== undefined && reserved.knownUntil > now) return LEAST
  if (haveEqualNumbers(policies, lists.smallest)) return FULL
  // Usage recorded under a higher tier still counts when a lower tier asks.
  return spentFractionOf(table, lists.smallest, now) > 0 ? LEAST : FULL
}

/**
 * The instant from which on losing the key in `row` would lose nothing: its allowance is full again under all policies it was
 * last decided with, and its refusals, if a penalty counts them, are forgotten.
 */
function fullAt(table: Table, row: number, now: number): number {
  const { cursor, lists } = table
  cursor.select(row)
  let at = Math.max(now, table.refusals.forgottenAt(row))
  lists.at(cursor.rows.listOf(row)).forEach((policy, i) => {
    policy.algorithm.view(cursor.states[i]!, policy, now, view)
    at = Math.max(at, view.resetAt)
  })
  return at
}

/**
 * The largest fraction of an allowance that the current key of a table has spent under any policy: 0 if all are full, 1 if one is
 * empty, more if units count above it. A fraction of a unit that is spent counts as LEAST, the smallest number above 0, as
 * `remaining` is rounded.
 */
function spentFractionOf({ cursor }: Table, policies: readonly Policy[], now: number): number {
  let most = 0
  for (let i = 0; i < policies.length; i++) {
    const policy = policies[i]!
    policy.algorithm.view(cursor.states[i]!, policy, now, view)
    if (view.resetAt > now) most = Math.max(most, LEAST, 1 - view.remaining / policy.capacity)
  }
  return most
}

const view: View = { remaining: 0, resetAt: 0 }

const FULL = 0
const LEAST = Number.MIN_VALUE
const EXHAUSTED = 1
/** Exhausted, and denied once. */
const DENIED = 2
const AWAITED = 9
const PENALIZED = 10
const BANNED = 11

/**
 * Counts the evicted keys that still mattered, for the warnings of each limiter: one for the first of them, one for the first
 * exhausted caller, and another each time the `maxKeys` that would have held all keys has doubled.
 */
export class Overflow {
  /** Evicted keys of this span, and of the one before. A span lasts until its first key would have been full again. */
  #evictedInSpan = 0
  #evictedInLastSpan = 0
  #spanEnd = 0

  constructor(private readonly maxKeys: number) {}

  /**
   * Counts an evicted key that still mattered. Returns the warning to report, if one is due: for the first such key of its table,
   * and for exhausted keys each time that `needed`, the `maxKeys` which would have held all keys, is twice what was last reported.
   * It is estimated as `maxKeys` plus the keys that were evicted within one span. A span ends when the first key evicted in it would
   * have been full again, and so would have made room. Of the last two spans the one with more evicted keys counts.
   */
  note({ table, fullAgainAt, wasExhausted }: Evicted, now: number): Notice | undefined {
    if (now >= this.#spanEnd) {
      this.#evictedInLastSpan = this.#evictedInSpan
      this.#evictedInSpan = 0
      this.#spanEnd = Math.max(fullAgainAt, now + 1)
    }
    this.#evictedInSpan++
    const needed = this.maxKeys + Math.max(this.#evictedInSpan, this.#evictedInLastSpan)
    if (wasExhausted && needed >= 2 * table.neededKeys) {
      table.neededKeys = needed
      const message = `the memory store forgets exhausted callers: maxKeys is ${this.maxKeys} and had to be ${needed}`
      // Tables of other shapes name other numbers: by the number itself callers who choose shapes would choose how many are reported.
      const id = `STORE_FULL ${Math.floor(Math.log2(needed))}`
      return { event: 'warning', code: 'STORE_FULL', message, id }
    }
    if (table.hasWarned || table.neededKeys > 0) return undefined
    table.hasWarned = true
    const message = 'the memory store holds maxKeys keys and begins to forget some that still count'
    return { event: 'warning', code: 'STORE_FULL', message }
  }
}
