import type { CallQueue } from './call-queue.js'
import { RateLimitExceededError } from './exceeded.js'
import type { KeyQueue, Turn } from './key-queue.js'

/** What a call asks for when it is made. */
export interface Terms {
  readonly key: string
  readonly cost: number
  readonly priority: number
  readonly maxWaitMs: number
  readonly signal: AbortSignal | undefined
}

/** What the outcome of a call asks for. */
export interface Verdict {
  readonly succeeded: boolean
  /** Milliseconds for which no call may go out: 0 for none, undefined after a refusal that does not say how long. */
  readonly pauseMs: number | undefined
  /** Milliseconds after which the call may be made again; false: this outcome is its last. */
  readonly again: number | false
  /** The key that is to pause, where it is another than that of the call. */
  readonly key?: string
  readonly status?: number
}

/** A failure that says nothing about limits, and is the caller's. */
export const FINAL: Verdict = { succeeded: false, pauseMs: 0, again: false }

/** One call on its way through a queue, repetitions included. */
export class Attempt {
  readonly #queue: CallQueue
  readonly #terms: Terms
  readonly #until: number
  /** The key that the latest answer is about. */
  #answered: string
  #delayMs = 0
  #times = 0

  constructor(queue: CallQueue, terms: Terms) {
    this.#queue = queue
    this.#terms = terms
    this.#answered = terms.key
    this.#until = performance.now() + terms.maxWaitMs
  }

  /** How often the call went out so far. */
  get times(): number {
    return this.#times
  }

  /**
   * Resolves when the call may go out.
   * @throws {RateLimitExceededError} when there is no turn in time; the signal's reason when it aborts.
   */
  async turn(): Promise<Turn> {
    const { key, priority, signal } = this.#terms
    const start = performance.now()
    try {
      signal?.throwIfAborted()
      const wait = this.#queue.wait(this.#keyQueue(), this.#terms, this.#until, ++this.#times)
      wait.start(this.#delay())
      const turn = await wait.turn
      const waitMs = Math.round(performance.now() - start)
      if (this.#keyQueue().pauses.resumed()) this.#queue.emit({ type: 'resumed', key })
      if (waitMs > 0) this.#queue.emit({ type: 'waited', key, priority, waitMs })
      return turn
    } catch (error) {
      if (error instanceof RateLimitExceededError) {
        this.#queue.emit({ type: 'denied', key, priority, reason: error.reason, decision: error.decision })
      }
      throw error
    }
  }

  /** Does what the verdict asks for. Returns whether the call is to be made again, at its next turn. */
  observe({ succeeded, pauseMs, again, key = this.#terms.key, status }: Verdict): boolean {
    this.#answered = key
    const answered = this.#keyQueue(key)
    if (succeeded) answered.pauses.succeeded()
    const ms = Math.min(pauseMs ?? answered.pauses.silentMs(), this.#queue.maxHoldMs)
    if (ms > 0 && answered.pause(ms, this.#queue.policies)) {
      this.#queue.emit({ type: 'held', key, status, holdMs: Math.ceil(ms) })
    }
    if (again === false || this.#queue.isEnding) return false
    if (Math.max(again, answered.pauses.leftMs) > this.#until - performance.now()) return false
    this.#delayMs = again
    return true
  }

  /** The limiter holds the key of the call; where another one answered, its pause has to be sat out here. */
  #delay(): number {
    const pauseMs = this.#answered === this.#terms.key ? 0 : this.#keyQueue(this.#answered).pauses.leftMs
    return pauseMs > 0 ? pauseMs + this.#delayMs : this.#delayMs
  }

  /** Asked for anew each time: while no call waits for a key, its queue may be forgotten, and others make another. */
  #keyQueue(key = this.#terms.key): KeyQueue {
    return this.#queue.keyQueue(key)
  }
}
