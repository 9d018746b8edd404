import { blockOf, type Penalty } from '../penalty.js'
import type { Reason } from '../store.js'

/**
 * The blocks (bans, which deny every call) and holds (pauses) of keys, by row: the number of the place where a table keeps a
 * key's state. Other keys have no entry, so ordinary calls pay one comparison, with `live`, and again once all blocks and holds
 * are over.
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

  /**
   * Whether the key in `row` is blocked (every call is denied) or held (a pause) at `now`. If both have ended, replaces its entry by
   * `OVER`, so that `live`, the number of other entries, can return to 0: calls then check no more than that number.
   */
  has(row: number, now: number): boolean {
    const last = this.lastOf(row)
    if (last.blockedUntil > now || last.heldUntil > now) return true
    if (last !== OVER) this.#set(row, OVER)
    return false
  }

  /** The last block and hold of the key in `row`, which may have ended; `OVER`, with both ends at 0, if it had none. */
  lastOf(row: number): Restriction {
    return this.#byRow.get(row) ?? OVER
  }

  /**
   * Blocks the key in `row` until the instant `until`. An operator's block replaces any other, even a longer one. A penalty's
   * block (`isPenalty`) never shortens a block that lasts at `now`, and if that is an operator's (`isBan`), it stays one.
   */
  block(row: number, now: number, until: number, isPenalty: boolean): void {
    const { blockedUntil, heldUntil, isBan } = this.lastOf(row)
    const lasts = isPenalty && blockedUntil > now
    const end = lasts ? Math.max(until, blockedUntil) : until
    this.#set(row, { blockedUntil: end, heldUntil, isBan: lasts ? isBan : !isPenalty })
  }

  /** Holds the key in `row` until the instant `until`, or as long as it was held before, if that is longer. Its block stays. */
  hold(row: number, until: number): void {
    const last = this.lastOf(row)
    this.#set(row, { ...last, heldUntil: Math.max(until, last.heldUntil) })
  }

  /** Ends the block and the hold of the key in `row`, and removes its entry. */
  clear(row: number): void {
    if (this.lastOf(row) !== OVER) this.#set(row, OVER)
    this.#byRow.delete(row)
  }

  /**
   * Sets the restriction (block and hold) of the key in `row`. Keeps two numbers up to date: `live`, of entries other than
   * `OVER`, and `bans`, of blocks of operators. `OVER` stands for a key without a restriction.
   */
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

/**
 * Returns why a call is denied at `now` if the earliest instant at which it passes is `at`: 'cost' if that is Infinity, 'blocked'
 * if the key is, and 'held' (during a hold) or 'limit' if it is more than `maxWait` microseconds away. Undefined if the call
 * passes, or may be booked for `at`. A block denies also calls that would wait for its end; a hold does not.
 */
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

/** The counts of refused calls (denied by a limit) after which a penalty blocks a key, by row. Keys without one have no entry. */
export class Refusals {
  readonly #byRow = new Map<number, Count>()

  /**
   * Counts a refusal of the key in `row`, from 1 again if the count was forgotten, and blocks the key from the refusal number
   * `penalty.after` on. Returns the end of the block, or `now` without a block. `instants` has for each policy the instant at
   * which it would admit the call; for policies that refuse now it becomes the end of the block, or stays if later, unless the
   * block clears what was consumed ('fresh'). `forgetAt` must follow.
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

  /** Sets the instant at which the count of the key in `row` starts again from 1. The count must exist, as after `penalize`. */
  forgetAt(row: number, instant: number): void {
    this.#byRow.get(row)!.forgottenAt = instant
  }

  /** The instant at which the count of the row is forgotten; 0 without a count. */
  forgottenAt(row: number): number {
    return this.#byRow.size === 0 ? 0 : (this.#byRow.get(row)?.forgottenAt ?? 0)
  }

  /** The counted refusals of the key in `row`; 0 without a count. One whose time is over is still returned. */
  countOf(row: number): number {
    return this.#byRow.get(row)?.refusals ?? 0
  }

  /** Sets the count of the key in `row`, and the instant at which it is forgotten, to those that another place has kept. */
  restore(row: number, refusals: number, forgottenAt: number): void {
    this.#byRow.set(row, { refusals, forgottenAt })
  }

  /** Removes the count of the key in `row`, if it has one. */
  clear(row: number): void {
    this.#byRow.delete(row)
  }
}

interface Count {
  refusals: number
  forgottenAt: number
}
