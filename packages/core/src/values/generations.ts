/**
 * A bounded map of what matters for a short time. Entries are kept for at least `life`, unless more than half of
 * `most` are added meanwhile, and forgotten a whole generation at a time: there is no timer, no order to keep, and
 * nothing that grows with what was deleted.
 */
export class Generations<V> {
  readonly #most: number
  readonly #life: number
  #young = new Map<string, V>()
  #old = new Map<string, V>()
  #bornAt = -Infinity

  constructor(most: number, life: number) {
    this.#most = Math.max(1, most >> 1)
    this.#life = life
  }

  get(key: string): V | undefined {
    return this.#young.get(key) ?? this.#old.get(key)
  }

  set(key: string, value: V, now: number): void {
    if (this.#young.size >= this.#most || now - this.#bornAt >= this.#life) {
      this.#old = this.#young
      this.#young = new Map()
      this.#bornAt = now
    }
    this.#young.set(key, value)
  }

  delete(key: string): void {
    this.#young.delete(key)
    this.#old.delete(key)
  }
}
