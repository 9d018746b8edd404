/** The blocks and holds of keys, by slot. Other keys have no entry, so ordinary calls pay one comparison. */
export class Barriers {
  readonly #bySlot = new Map<number, Barrier>()

  get size(): number {
    return this.#bySlot.size
  }

  /** Whether the slot has been blocked or held, also if that is over. */
  has(slot: number): boolean {
    return this.#bySlot.size > 0 && this.#bySlot.has(slot)
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

interface Barrier {
  readonly blockedUntil: number
  readonly heldUntil: number
}
