import type { Notice } from '../store.js'
import type { Evicted } from './retention.js'

/**
 * Keeps count of what a full store forgets although it still counts, for the warnings of each limiter: one when it begins,
 * one when exhausted callers are forgotten, and again each time the `maxKeys` that would have held all keys has doubled.
 */
export class Overflow {
  readonly #maxKeys: number
  /** Keys forgotten in this span, and in the one before it. A span is as long as the first key of it still counted. */
  #forgotten = 0
  #before = 0
  #spanEnd = 0

  constructor(maxKeys: number) {
    this.#maxKeys = maxKeys
  }

  /** Counts a key that was forgotten; returns what is to be reported of it. */
  note({ table, fullAgainAt, wasExhausted }: Evicted, now: number): Notice | undefined {
    if (now >= this.#spanEnd) {
      this.#before = this.#forgotten
      this.#forgotten = 0
      this.#spanEnd = Math.max(fullAgainAt, now + 1)
    }
    this.#forgotten++
    const needed = this.#maxKeys + Math.max(this.#forgotten, this.#before)
    if (wasExhausted && needed >= 2 * table.neededKeys) {
      table.neededKeys = needed
      const message =
        `the memory store forgets exhausted callers, who may then call again: ` +
        `maxKeys is ${this.#maxKeys} and had to be at least ${needed}`
      return { event: 'warning', code: 'STORE_FULL', message, id: `STORE_FULL ${needed}` }
    }
    if (table.neededKeys > 0) return undefined
    table.neededKeys = 1
    const message = 'the memory store holds maxKeys keys and begins to forget some that still count'
    return { event: 'warning', code: 'STORE_FULL', message }
  }
}
