/** The blocks and holds of keys, by slot. Other keys have no entry, so ordinary calls pay one comparison. */
export class Barriers {
  /** Slots with an entry. A field, because V8 calls a function for the size of a Map. */
  size = 0
  readonly #bySlot = new Map<number, Barrier>()

  /** The block and the hold of the slot, which may be over; undefined if there were none. */
  of(slot: number): Barrier | undefined {
    return this.size === 0 ? undefined : this.#bySlot.get(slot)
  }

  /** Instant until which the slot is blocked; 0 if it is not. */
  blockedUntil(slot: number): number {
    return this.size === 0 ? 0 : (this.#bySlot.get(slot)?.blockedUntil ?? 0)
  }

  /** Instant until which the slot is held; 0 if it is not. */
  heldUntil(slot: number): number {
    return this.size === 0 ? 0 : (this.#bySlot.get(slot)?.heldUntil ?? 0)
  }

  /** The later of the two. */
  until(slot: number): number {
    return Math.max(this.blockedUntil(slot), this.heldUntil(slot))
  }

  block(slot: number, until: number): void {
    this.#set(slot, { blockedUntil: until, heldUntil: this.heldUntil(slot) })
  }

  hold(slot: number, until: number): void {
    const heldUntil = Math.max(until, this.heldUntil(slot))
    this.#set(slot, { blockedUntil: this.blockedUntil(slot), heldUntil })
  }

  clear(slot: number): void {
    if (this.#bySlot.delete(slot)) this.size--
  }

  #set(slot: number, barrier: Barrier): void {
    this.#bySlot.set(slot, barrier)
    this.size = this.#bySlot.size
  }
}

export interface Barrier {
  readonly blockedUntil: number
  readonly heldUntil: number
}
