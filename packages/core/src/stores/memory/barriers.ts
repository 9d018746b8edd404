/**
 * The blocks and holds of keys, by row. Other keys have no entry, so ordinary calls pay one comparison, and again once all
 * blocks and holds are over.
 */
export class Barriers {
  /** Entries that are not known to be over. A field, because V8 calls a function for the size of a Map. */
  #live = 0
  readonly #byRow = new Map<number, Barrier>()

  /** Keys that have been blocked or held since they were added. */
  get size(): number {
    return this.#byRow.size
  }

  /** The block and the hold of the row; undefined if it has none or both are over at `now`. */
  of(row: number, now: number): Barrier | undefined {
    return this.#live === 0 ? undefined : this.#liveOf(row, now)
  }

  /** The last block and hold of the row, which may be over. */
  lastOf(row: number): Barrier {
    return this.#byRow.get(row) ?? OVER
  }

  block(row: number, until: number): void {
    this.#set(row, { blockedUntil: until, heldUntil: this.lastOf(row).heldUntil })
  }

  hold(row: number, until: number): void {
    const { blockedUntil, heldUntil } = this.lastOf(row)
    this.#set(row, { blockedUntil, heldUntil: Math.max(until, heldUntil) })
  }

  clear(row: number): void {
    if (this.lastOf(row) !== OVER) this.#live--
    this.#byRow.delete(row)
  }

  #liveOf(row: number, now: number): Barrier | undefined {
    const barrier = this.lastOf(row)
    if (barrier === OVER) return undefined
    if (barrier.blockedUntil > now || barrier.heldUntil > now) return barrier
    this.#byRow.set(row, OVER)
    this.#live--
    return undefined
  }

  #set(row: number, barrier: Barrier): void {
    if (this.lastOf(row) === OVER) this.#live++
    this.#byRow.set(row, barrier)
  }
}

export interface Barrier {
  /** The end of the block, 0 without one. */
  readonly blockedUntil: number
  /** The end of the hold, 0 without one. */
  readonly heldUntil: number
}

const OVER: Barrier = { blockedUntil: 0, heldUntil: 0 }
