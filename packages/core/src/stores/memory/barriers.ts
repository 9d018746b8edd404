/**
 * The blocks and holds of keys, by slot. Other keys have no entry, so ordinary calls pay one comparison, and again once all
 * blocks and holds are over.
 */
export class Barriers {
  /** Entries that are not known to be over. A field, because V8 calls a function for the size of a Map. */
  #live = 0
  readonly #bySlot = new Map<number, Barrier>()

  /** Keys that have been blocked or held since they were added. */
  get size(): number {
    return this.#bySlot.size
  }

  /** The block and the hold of the slot; undefined if it has none or both are over at `now`. */
  of(slot: number, now: number): Barrier | undefined {
    return this.#live === 0 ? undefined : this.#liveOf(slot, now)
  }

  /** The last block and hold of the slot, which may be over. */
  lastOf(slot: number): Barrier {
    return this.#bySlot.get(slot) ?? OVER
  }

  block(slot: number, until: number): void {
    this.#set(slot, { blockedUntil: until, heldUntil: this.lastOf(slot).heldUntil })
  }

  hold(slot: number, until: number): void {
    const { blockedUntil, heldUntil } = this.lastOf(slot)
    this.#set(slot, { blockedUntil, heldUntil: Math.max(until, heldUntil) })
  }

  clear(slot: number): void {
    if (this.lastOf(slot) !== OVER) this.#live--
    this.#bySlot.delete(slot)
  }

  #liveOf(slot: number, now: number): Barrier | undefined {
    const barrier = this.lastOf(slot)
    if (barrier === OVER) return undefined
    if (barrier.blockedUntil > now || barrier.heldUntil > now) return barrier
    this.#bySlot.set(slot, OVER)
    this.#live--
    return undefined
  }

  #set(slot: number, barrier: Barrier): void {
    if (this.lastOf(slot) === OVER) this.#live++
    this.#bySlot.set(slot, barrier)
  }
}

export interface Barrier {
  /** The end of the block, 0 without one. */
  readonly blockedUntil: number
  /** The end of the hold, 0 without one. */
  readonly heldUntil: number
}

const OVER: Barrier = { blockedUntil: 0, heldUntil: 0 }
