import type { Notice } from '../store.js'
import type { Evicted } from './eviction.js'

/**
 * Counts the evicted keys that still mattered, for the warnings of each limiter: one for the first of them, one for the first
 * exhausted caller, and another each time the `maxKeys` that would have held all keys has doubled.
 */
export class Overflow {
  readonly #maxKeys: number
  /** Evicted keys of this span, and of the one before. A span lasts until its first key would have been full again. */
  #forgotten = 0
  #before = 0
  #spanEnd = 0

  constructor(maxKeys: number) {
    this.#maxKeys = maxKeys
  }

  /** Counts an evicted key. Returns the warning to be reported, if any. */
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
    if (table.hasWarned || table.neededKeys > 0) return undefined
    table.hasWarned = true
    const message = 'the memory store holds maxKeys keys and begins to forget some that still count'
    return { event: 'warning', code: 'STORE_FULL', message }
  }
}
