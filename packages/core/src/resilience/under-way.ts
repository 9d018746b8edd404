import type { MaybePromise } from '../stores/store.js'

/**
 * Calls that a store has not answered yet, whoever still waits for them: clients keep what they cannot send, without
 * end. One that stays unanswered for a minute is taken for lost, as clients can be set up to settle nothing after a
 * connection broke.
 */
export class UnderWay {
  readonly #calls = new Set<Call>()
  readonly #now: () => number

  /** `now` in milliseconds, of a clock that does not run back. */
  constructor(now = (): number => performance.now()) {
    this.#now = now
  }

  get isFull(): boolean {
    if (this.#calls.size < MOST_UNDER_WAY) return false
    const lost = this.#now() - LOST_MS
    for (const call of this.#calls) {
      if (call.since > lost) break
      this.#calls.delete(call)
    }
    return this.#calls.size >= MOST_UNDER_WAY
  }

  async track<T>(send: () => MaybePromise<T>): Promise<T> {
    const call = { since: this.#now() }
    this.#calls.add(call)
    try {
      return await send()
    } finally {
      this.#calls.delete(call)
    }
  }
}

interface Call {
  readonly since: number
}

export const MOST_UNDER_WAY = 1000
const LOST_MS = 60_000
