/**
 * How many calls a store has not answered yet, whoever still waits for them: clients keep what they cannot send, without
 * end. One that stays unanswered for a minute is taken for lost, as clients can be set up to settle nothing after a
 * connection broke.
 */
export class UnderWay {
  readonly #now: () => number
  /** Those that began within a second, the oldest first. Single calls are not kept: that would cost more than it tells. */
  #generations: Generation[] = []
  #count = 0

  /** `now` in milliseconds, of a clock that does not run back. */
  constructor(now = (): number => performance.now()) {
    this.#now = now
  }

  get count(): number {
    return this.#count
  }

  get isFull(): boolean {
    if (this.#count < MOST_UNDER_WAY) return false
    const lost = this.#now() - LOST_MS - GENERATION_MS
    const [oldest] = this.#generations
    if (oldest && oldest.since <= lost) {
      this.#count -= oldest.calls
      oldest.isLost = true
      this.#generations.shift()
    }
    return this.#count >= MOST_UNDER_WAY
  }

  /** Counts a call that began at `since`. Give what this returns to `end` when it was answered or failed. */
  begin(since: number): Generation {
    let latest = this.#generations.at(-1)
    if (!latest || since - latest.since >= GENERATION_MS) {
      latest = { since, calls: 0, isLost: false }
      this.#generations = [...this.#generations.filter(({ calls }) => calls > 0), latest]
    }
    latest.calls++
    this.#count++
    return latest
  }

  end(generation: Generation): void {
    generation.calls--
    if (!generation.isLost) this.#count--
  }
}

export interface Generation {
  readonly since: number
  calls: number
  isLost: boolean
}

const MOST_UNDER_WAY = 1000
const LOST_MS = 60_000
const GENERATION_MS = 1000
