import type { Caller } from '../store.js'
import type { Bytes } from './client.js'

/** What one caller asks a script about one key. */
export interface Call {
  readonly key: string
  /** What it takes of Redis's time: 1, or what its cost is where each unit is written. */
  readonly units: number
  readonly caller: Caller | undefined
  /** Those after it that ask the same. */
  alike: Call[] | undefined
  /** Whether `other` asks the same of its key: with the same argument, and if the keys are the same in one run. */
  isLike(other: Call): boolean
  /** The script's argument when this call is made `times` times in one run. */
  argument(times: number): Bytes
  /** Tells its caller, and those of the calls that are alike, what the script replied. */
  answer(reply: Buffer): void
  /** Tells its caller alone that nothing was decided. */
  fail(error: unknown): void
}

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
    return this.#size >= MOST_CALLS || this.#units >= MOST_UNITS
  }

  has(key: string): boolean {
    return this.#calls.has(key)
  }

  /** Takes a call along if there is room for it; one of a key that is in here already only if it asks the same. */
  take(call: Call): boolean {
    if (this.#size > 0 && (this.#size >= MOST_CALLS || this.#units + call.units > MOST_UNITS)) return false
    const first = this.#calls.get(call.key)
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

/** Callers in a batch: a script holds up everybody else while it runs. */
const MOST_CALLS = 64

/** A log takes a slot for each unit, and a single call may have as many as this. */
const MOST_UNITS = 1000
