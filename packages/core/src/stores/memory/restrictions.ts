import { blockOf, type Penalty } from '../penalty.js'
import type { Reason } from '../store.js'

/**
 * The blocks and holds of keys, by row. Other keys have no entry, so ordinary calls pay one comparison, with `live`, and again
 * once all blocks and holds are over.
 */
export class Restrictions {
  /** Entries that are not known to be over. A field, because V8 calls a function for the size of a Map. */
  live = 0
  /** Live entries that are blocks of operators. */
  bans = 0
  readonly #byRow = new Map<number, Restriction>()

  /** Keys that have been blocked or held since they were added. */
  get size(): number {
    return this.#byRow.size
  }

  /** Whether a row has a block or hold at `now`. If both have ended, they are forgotten here. */
  has(row: number, now: number): boolean {
    const last = this.lastOf(row)
    if (last.blockedUntil > now || last.heldUntil > now) return true
    if (last !== OVER) this.#set(row, OVER)
    return false
  }

  /** The last block and hold of the row, which may be over. */
  lastOf(row: number): Restriction {
    return this.#byRow.get(row) ?? OVER
  }

  /**
   * Blocks the key in `row` until an instant. A penalty's block never shortens another, and leaves an operator's block
   * what it is until it ends.
   */
  block(row: number, now: number, until: number, isPenalty: boolean): void {
    const { blockedUntil, heldUntil, isBan } = this.lastOf(row)
    const lasts = isPenalty && blockedUntil > now
    const end = lasts ? Math.max(until, blockedUntil) : until
    this.#set(row, { blockedUntil: end, heldUntil, isBan: lasts ? isBan : !isPenalty })
  }

  /** Holds the key in `row` until an instant, or longer if it was held longer. */
  hold(row: number, until: number): void {
    const last = this.lastOf(row)
    this.#set(row, { ...last, heldUntil: Math.max(until, last.heldUntil) })
  }

  /** Forgets the block and the hold of a row. */
  clear(row: number): void {
    if (this.lastOf(row) !== OVER) this.#set(row, OVER)
    this.#byRow.delete(row)
  }

  /** Sets the restriction of a row, and keeps the counts of restricted and banned rows right. */
  #set(row: number, restriction: Restriction): void {
    const last = this.lastOf(row)
    this.live += Number(last === OVER) - Number(restriction === OVER)
    this.bans += Number(restriction.isBan) - Number(last.isBan)
    this.#byRow.set(row, restriction)
  }
}

export interface Restriction {
  /** The end of the block, 0 without one. */
  readonly blockedUntil: number
  /** The end of the hold, 0 without one. */
  readonly heldUntil: number
  /** Whether the block is an operator's, and not a penalty's. */
  readonly isBan: boolean
}

/** Why a call that passes at `at` is denied at `now`; undefined if it is not. */
export function reasonOf(
  restriction: Restriction | undefined,
  now: number,
  at: number,
  maxWait: number,
): Reason | undefined {
  if (at === Infinity) return 'cost'
  if (restriction && restriction.blockedUntil > now) return 'blocked'
  if (at > now + maxWait) return restriction && restriction.heldUntil > now ? 'held' : 'limit'
  return undefined
}

const OVER: Restriction = { blockedUntil: 0, heldUntil: 0, isBan: false }

/** The counts of refused calls that a penalty goes by, by row. Keys without one have no entry. */
export class Refusals {
  readonly #byRow = new Map<number, Count>()

  /**
   * Counts a refusal of the key in `row`, and blocks the key if that is due. `instants`, at which each policy would
   * admit the call, are moved to the end of the block for the policies that refused it. Returns that end, or `now`
   * without a block. `forgetAt` must follow.
   */
  penalize(
    row: number,
    penalty: Penalty,
    now: number,
    restrictions: Restrictions,
    instants: number[],
  ): number {
    let count = this.#byRow.get(row)
    if (!count) this.#byRow.set(row, (count = { refusals: 0, forgottenAt: 0 }))
    count.refusals = count.forgottenAt > now ? count.refusals + 1 : 1
    if (count.refusals < penalty.after) return now
    const until = Math.max(restrictions.lastOf(row).blockedUntil, now + blockOf(penalty, count.refusals))
    restrictions.block(row, now, until, true)
    const isFresh = penalty.then === 'fresh'
    for (const [i, instant] of instants.entries()) {
      if (instant > now) instants[i] = isFresh ? until : Math.max(instant, until)
    }
    return until
  }

  /** Sets the instant at which the count that `penalize` has made is forgotten. */
  forgetAt(row: number, instant: number): void {
    this.#byRow.get(row)!.forgottenAt = instant
  }

  /** The instant at which the count of the row is forgotten; 0 without a count. */
  forgottenAt(row: number): number {
    return this.#byRow.size === 0 ? 0 : (this.#byRow.get(row)?.forgottenAt ?? 0)
  }

  /** The refusals of the row that are counted now. */
  countOf(row: number): number {
    return this.#byRow.get(row)?.refusals ?? 0
  }

  /** Sets a count that is kept elsewhere. */
  restore(row: number, refusals: number, forgottenAt: number): void {
    this.#byRow.set(row, { refusals, forgottenAt })
  }

  clear(row: number): void {
    this.#byRow.delete(row)
  }
}

interface Count {
  refusals: number
  forgottenAt: number
}
