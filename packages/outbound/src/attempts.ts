import type { CallTerms, CallQueue } from './call-queue.js'
import { RateLimitExceededError } from './exceeded.js'
import type { Admission } from './admission.js'
import type { KeyQueue } from './key-queue.js'
import type { Verdict } from './task.js'

/** All attempts of one call: each waits for its turn, until one has the final outcome. */
export class Attempts {
  readonly #queue: CallQueue
  readonly #terms: CallTerms
  readonly #until: number
  /** The key that the latest reply was about. */
  #answeredKey: string
  #delayMs = 0
  #count = 0

  constructor(queue: CallQueue, terms: CallTerms) {
    this.#queue = queue
    this.#terms = terms
    this.#answeredKey = terms.key
    this.#until = performance.now() + terms.maxWaitMs
  }

  /** Attempts so far, the current one included. */
  get count(): number {
    return this.#count
  }

  /** @throws {RateLimitExceededError} when there is no turn in time; the signal's reason when it aborts. */
  async next(): Promise<Admission> {
    const { key, cost, priority, signal } = this.#terms
    const { limiter } = this.#queue
    const of = { limiter, key, cost, priority }
    const start = performance.now()
    try {
      signal?.throwIfAborted()
      const wait = this.#queue.wait(this.#keyQueue(), this.#terms, this.#until, ++this.#count)
      wait.start(this.#nextDelayMs())
      const admission = await wait.admission
      const waitMs = Math.round(performance.now() - start)
      if (this.#keyQueue().pause.resumed()) this.#queue.emit({ type: 'resumed', limiter, key })
      const { decision } = admission
      if (waitMs > 0) this.#queue.emit({ type: 'waited', ...of, waitMs, decision })
      return admission
    } catch (error) {
      if (error instanceof RateLimitExceededError) {
        const { reason, decision } = error
        this.#queue.emit({ type: 'denied', ...of, reason, decision })
      }
      throw error
    }
  }

  /** Carries out the verdict on the current attempt. Returns whether another attempt is to follow. */
  observe({ succeeded, pauseMs, again, key = this.#terms.key, status }: Verdict): boolean {
    this.#answeredKey = key
    const keyQueue = this.#keyQueue(key)
    if (succeeded) keyQueue.pause.succeeded()
    const ms = Math.min(pauseMs ?? keyQueue.pause.silentMs(), this.#queue.maxHoldMs)
    if (ms > 0 && keyQueue.hold(ms, this.#queue.policies)) {
      this.#queue.emit({ type: 'held', limiter: this.#queue.limiter, key, status, holdMs: Math.ceil(ms) })
    }
    if (again === false || this.#queue.isEnding) return false
    if (Math.max(again, keyQueue.pause.leftMs) > this.#until - performance.now()) return false
    this.#delayMs = again
    return true
  }

  /** The limiter holds only the call's own key, so the pause of another key that replied is waited for here. */
  #nextDelayMs(): number {
    const isOwnKey = this.#answeredKey === this.#terms.key
    return this.#delayMs + (isOwnKey ? 0 : this.#keyQueue(this.#answeredKey).pause.leftMs)
  }

  /** Looked up for each use: the queue of a key for which no call waits may be dropped, and made anew by another call. */
  #keyQueue(key = this.#terms.key): KeyQueue {
    return this.#queue.keyQueue(key)
  }
}
