/** The time in which one call waits for answers of a store elsewhere. */
export class StoreWait {
  /** On the clock of `performance.now()`; undefined while no answer is outstanding. */
  #askedAt: number | undefined
  #ms = 0

  /** Milliseconds so far, those for an outstanding answer included. */
  get ms(): number {
    return this.#ms + (this.#askedAt === undefined ? 0 : performance.now() - this.#askedAt)
  }

  async over<T>(answer: Promise<T>): Promise<T> {
    this.#askedAt = performance.now()
    try {
      return await answer
    } finally {
      this.#ms = this.ms
      this.#askedAt = undefined
    }
  }
}
