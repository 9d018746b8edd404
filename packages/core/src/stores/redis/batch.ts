import type { Call } from './calls.js'

/** Calls that wait to be sent as one: each key once, so that calls that are not alike keep their order. */
export class Batch {
  readonly #calls = new Map<string, Call>()
  #size = 0
  #units = 0

  /** Callers. */
  get size(): number {
    return this.#size
  }

  get isFull(): boolean {
    return this.#calls.size >= MOST_KEYS || this.#size >= MOST_CALLS || this.#units >= MOST_UNITS
  }

  has(key: string): boolean {
    return this.#calls.has(key)
  }

  /** Takes a call along if there is room for it; one of a key that is in here already only if it asks the same. */
  take(call: Call): boolean {
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

  /** The first call of each key, with those that are alike. */
  calls(): Call[] {
    return [...this.#calls.values()]
  }
}

/**
 * Keys and callers in a batch, as a script holds up other clients while it runs. An equal call takes an eighth of the time
 * of another key, but with more callers there would be no second batch to read while Redis decides.
 */
const MOST_KEYS = 64
const MOST_CALLS = 128

/** A log takes a slot for each unit, and a single call may have as many as this. */
const MOST_UNITS = 1000
