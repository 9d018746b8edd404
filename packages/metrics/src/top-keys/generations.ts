import { SpaceSaving } from './space-saving.js'
import { merge, type Summary, summaryOf } from './summary.js'

/** The heaviest keys of the last two generations: the current one, and the one that ended with the last `turn`. */
export class Generations {
  readonly #size: number
  #current: SpaceSaving
  #previous: Summary = NOTHING

  constructor(size: number) {
    this.#size = size
    this.#current = new SpaceSaving(size)
  }

  add(key: string): void {
    this.#current.add(key)
  }

  /** Begins a new generation, and forgets what is older than the current one. */
  turn(): void {
    this.#previous = summaryOf(this.#current)
    this.#current = new SpaceSaving(this.#size)
  }

  summary(): Summary {
    return merge([this.#previous, summaryOf(this.#current)], this.#size)
  }
}

const NOTHING: Summary = { total: 0, missed: 0, keys: [] }
