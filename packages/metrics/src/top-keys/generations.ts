import { SpaceSaving } from './space-saving.js'
import { merge, type Summary, summaryOf } from './summary.js'

/** The heaviest keys of the last while, in two generations of half of it: what is listed is between half and all of it old. */
export class Generations {
  readonly #size: number
  readonly #halfMs: number
  #current: SpaceSaving
  #previous: SpaceSaving | undefined
  #endsAt: number

  /** `now` in milliseconds, of a clock that does not run back. */
  constructor(size: number, windowMs: number, now: number) {
    this.#size = size
    this.#halfMs = windowMs / 2
    this.#current = new SpaceSaving(size)
    this.#endsAt = now + this.#halfMs
  }

  add(key: string, now: number): void {
    if (now >= this.#endsAt) this.#turn(now)
    this.#current.add(key)
  }

  summary(now: number): Summary {
    if (now >= this.#endsAt) this.#turn(now)
    const summaries = [this.#previous, this.#current].flatMap((counts) => (counts ? summaryOf(counts) : []))
    return merge(summaries, this.#size)
  }

  #turn(now: number): void {
    const isRecent = now < this.#endsAt + this.#halfMs
    this.#previous = isRecent ? this.#current : undefined
    this.#current = new SpaceSaving(this.#size)
    this.#endsAt = isRecent ? this.#endsAt + this.#halfMs : now + this.#halfMs
  }
}
