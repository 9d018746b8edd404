/** The blocks and holds of keys, by slot. Other keys have no entry, so ordinary calls pay one comparison. */
export class Barriers {
  readonly #bySlot = new Map<number, Barrier>()

  get size(): number {
    return this.#bySlot.size
  }

  /** The block and the hold of the slot, which may be over; undefined if there were none. */
  of(slot: number): Barrier | undefined {
    return this.#bySlot.size === 0 ? undefined : this.#bySlot.get(slot)
  }

  /** Instant until which the slot is blocked; 0 if it is not. */
  blockedUntil(slot: number): number {
    return this.#bySlot.size === 0 ? 0 : (this.#bySlot.get(slot)?.blockedUntil ?? 0)
  }

  /** Instant until which the slot is held; 0 if it is not. */
  heldUntil(slot: number): number {
    return this.#bySlot.size === 0 ? 0 : (this.#bySlot.get(slot)?.heldUntil ?? 0)
  }

  /** The later of the two. */
  until(slot: number): number {
    return Math.max(this.blockedUntil(slot), this.heldUntil(slot))
  }

  block(slot: number, until: number): void {
    this.#bySlot.set(slot, { blockedUntil: until, heldUntil: this.heldUntil(slot) })
  }

  hold(slot: number, until: number): void {
    const heldUntil = Math.max(until, this.heldUntil(slot))
    this.#bySlot.set(slot, { blockedUntil: this.blockedUntil(slot), heldUntil })
  }

  clear(slot: number): void {
    this.#bySlot.delete(slot)
  }
}

export interface Barrier {
  readonly blockedUntil: number
  readonly heldUntil: number
}
