import { copiedText } from './key.js'

/**
 * A bounded map of short-lived entries. An entry is kept for at least `life`, unless more than half of `most` are added
 * meanwhile. Entries are discarded a whole generation at a time, so that the map needs no timer and no order, and deleted
 * entries take no memory.
 */
export class ExpiringMap<V> {
  /** Whether an entry was ever added: looking for one takes two hashes. */
  isUsed = false
  readonly #mostPerGeneration: number
  #young = new Map<string, V>()
  #old = new Map<string, V>()
  #youngSince = -Infinity

  /**
   * Makes an empty map of at most `most` entries, half of them in each of its two generations, but at least one. `life` is in the
   * unit of the `now` that is passed to `set`.
   */
  constructor(
    most: number,
    private readonly life: number,
  ) {
    this.#mostPerGeneration = Math.max(1, most >> 1)
  }

  /** The value of a key; undefined if it was never set or was discarded. It may be older than `life`, as only `set` discards. */
  get(key: string): V | undefined {
    return this.#young.get(key) ?? this.#old.get(key)
  }

  /**
   * Sets the value of a key, in the young generation. If that is full, or was begun at least a `life` before `now`, it first becomes
   * the old generation, and the former old one is discarded with all its entries.
   */
  set(key: string, value: V, now: number): void {
    if (this.#young.size >= this.#mostPerGeneration || now - this.#youngSince >= this.life) {
      this.#old = this.#young
      this.#young = new Map()
      this.#youngSince = now
    }
    this.#young.set(copiedText(key), value)
    this.isUsed = true
  }

  /** Removes a key, which either generation may have. */
  delete(key: string): void {
    this.#young.delete(key)
    this.#old.delete(key)
  }
}
