import { blockOf, type Penalty } from '../penalty.js'
import type { Barriers } from './barriers.js'

/** The counts of refused calls that a penalty goes by, by slot. Keys without one have no entry. */
export class Refusals {
  readonly #bySlot = new Map<number, Count>()

  /**
   * Counts a refusal, and blocks the slot if that is due. `instants` are those at which each policy would admit the call; the
   * policies that refused it refuse it until the block ends. Returns the end of the block, `now` without one. `keep` must
   * follow.
   */
  penalize(slot: number, penalty: Penalty, now: number, barriers: Barriers, instants: number[]): number {
    let count = this.#bySlot.get(slot)
    if (!count) this.#bySlot.set(slot, (count = { refusals: 0, forgottenAt: 0 }))
    count.refusals = count.forgottenAt > now ? count.refusals + 1 : 1
    if (count.refusals < penalty.after) return now
    const until = Math.max(barriers.lastOf(slot).blockedUntil, now + blockOf(penalty, count.refusals))
    barriers.block(slot, until)
    for (const [i, instant] of instants.entries()) if (instant > now) instants[i] = Math.max(instant, until)
    return until
  }

  /** Keeps the count that `penalize` has made until the instant `until`. */
  keep(slot: number, until: number): void {
    this.#bySlot.get(slot)!.forgottenAt = until
  }

  /** The instant at which the count of the slot is forgotten; 0 without a count. */
  forgottenAt(slot: number): number {
    return this.#bySlot.size === 0 ? 0 : (this.#bySlot.get(slot)?.forgottenAt ?? 0)
  }

  /** The refusals of the slot that are counted now. */
  countOf(slot: number): number {
    return this.#bySlot.get(slot)?.refusals ?? 0
  }

  /** Sets a count that is kept elsewhere. */
  restore(slot: number, refusals: number, forgottenAt: number): void {
    this.#bySlot.set(slot, { refusals, forgottenAt })
  }

  clear(slot: number): void {
    this.#bySlot.delete(slot)
  }
}

interface Count {
  refusals: number
  forgottenAt: number
}
