import { blockOf, type Penalty } from '../penalty.js'
import type { Barriers } from './barriers.js'

/** The counts of refused calls that a penalty goes by, by row. Keys without one have no entry. */
export class Refusals {
  readonly #byRow = new Map<number, Count>()

  /**
   * Counts a refusal, and blocks the row if that is due. `instants` are those at which each policy would admit the call; the
   * policies that refused it refuse it until the block ends. Returns the end of the block, `now` without one. `keep` must
   * follow.
   */
  penalize(row: number, penalty: Penalty, now: number, barriers: Barriers, instants: number[]): number {
    let count = this.#byRow.get(row)
    if (!count) this.#byRow.set(row, (count = { refusals: 0, forgottenAt: 0 }))
    count.refusals = count.forgottenAt > now ? count.refusals + 1 : 1
    if (count.refusals < penalty.after) return now
    const until = Math.max(barriers.lastOf(row).blockedUntil, now + blockOf(penalty, count.refusals))
    barriers.block(row, until)
    for (const [i, instant] of instants.entries()) if (instant > now) instants[i] = Math.max(instant, until)
    return until
  }

  /** Keeps the count that `penalize` has made until the instant `until`. */
  keep(row: number, until: number): void {
    this.#byRow.get(row)!.forgottenAt = until
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
