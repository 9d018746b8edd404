/** Values by their ids. Each is kept for as long as it is held elsewhere, so that all who ask for an id share one. */
export class WeakValues<V extends object> {
  readonly #held = new Map<string, WeaklyHeld<V>>()
  #sweepAtSize = LEAST_SWEPT_SIZE

  /**
   * Returns the value of an id. It is made by `make` if the id is new, or if the former value was garbage-collected because only this
   * map, which holds values weakly, still referred to it. A sweep removes the ids of collected values: it runs when the number of all
   * ids has doubled since the last sweep and is at least 256.
   */
  get(id: string, make: () => V): V {
    const existing = this.#held.get(id)?.deref()
    if (existing) return existing
    const value = make()
    this.#held.set(id, heldWeakly(value))
    if (this.#held.size >= this.#sweepAtSize) this.#sweep()
    return value
  }

  /** The values that are still held. */
  values(): V[] {
    return [...this.#held.values()].flatMap((held) => held.deref() ?? [])
  }

  /** Removes the ids of values that nothing else holds any more. It runs each time the number of ids has doubled. */
  #sweep(): void {
    for (const [id, held] of this.#held) if (!held.deref()) this.#held.delete(id)
    this.#sweepAtSize = Math.max(LEAST_SWEPT_SIZE, 2 * this.#held.size)
  }
}

export interface WeaklyHeld<V> {
  deref(): V | undefined
}

/**
 * Returns a reference to a value that does not keep it in memory; in a runtime without WeakRef, one that does. Cloudflare Workers
 * have none under compatibility dates before May 2025.
 */
export function heldWeakly<V extends object>(value: V): WeaklyHeld<V> {
  return typeof WeakRef === 'function' ? new WeakRef(value) : { deref: () => value }
}

const LEAST_SWEPT_SIZE = 256
