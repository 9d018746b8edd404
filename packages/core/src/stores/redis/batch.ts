import type { ScriptCall } from './script-call.js'

/** Calls that will be sent as one script call. A key occurs once; calls on it that differ go into later batches, in order. */
export class Batch {
  readonly #calls = new Map<string, ScriptCall>()
  #size = 0
  #units = 0

  /** Number of calls, equal ones included. */
  get size(): number {
    return this.#size
  }

  get isFull(): boolean {
    return this.#calls.size >= MOST_KEYS || this.#size >= MOST_CALLS || this.#units >= MOST_UNITS
  }

  has(key: string): boolean {
    return this.#calls.has(key)
  }

  /** Adds a call if there is room; for a key that is in the batch already, only a call equal to the first one. */
  take(call: ScriptCall): boolean {
    if (this.#size > 0 && (this.#size >= MOST_CALLS || this.#units + call.units > MOST_UNITS)) return false
    const first = this.#calls.get(call.key)
    if (first === undefined && this.#calls.size >= MOST_KEYS) return false
    if (first === undefined) this.#calls.set(call.key, call)
    else if (!first.isLike(call)) return false
    else if (first.alike) first.alike.push(call)
    else first.alike = [call]
    this.#size++
    this.#units += call.units
    return true
  }

  /** The first call of each key, which holds the equal ones. */
  calls(): ScriptCall[] {
    return [...this.#calls.values()]
  }
}

/**
 * Most keys and calls in a batch, because a script blocks other clients while it runs. An equal call takes an eighth of the
 * time of another key, but larger batches would leave no second one to read while Redis decides.
 */
const MOST_KEYS = 64
const MOST_CALLS = 128

/** Most units on logs, which write one slot per unit. A single call may have as many. */
const MOST_UNITS = 1000
