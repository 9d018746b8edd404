import type { MaybePromise } from '../stores/store.js'
import type { Deadline } from './deadline.js'

/**
 * Calls that wait until a store answers again. One timer serves all of them. While no other call is sent to the store, one
 * of them probes it, as often as the circuit allows.
 */
export class RecoveryQueue {
  readonly #channel: ProbedChannel
  /** With each call the number of answers at the time when it began to wait. */
  readonly #waiting = new Map<RecoveryWaiter, number>()
  #timer: ReturnType<typeof setInterval> | undefined
  #answeredBefore = 0

  constructor(channel: ProbedChannel) {
    this.#channel = channel
  }

  get size(): number {
    return this.#waiting.size
  }

  /** Calls `resume` once the store has answered another call in time from now on, and not before `notBefore`. */
  add(waiter: RecoveryWaiter): void {
    this.#waiting.set(waiter, this.#channel.answeredInTime)
    this.#timer ??= setInterval(() => this.#check(), CHECK_MS)
  }

  remove(waiter: RecoveryWaiter): void {
    this.#waiting.delete(waiter)
    if (this.#waiting.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #check(): void {
    const { answeredInTime } = this.#channel
    const now = performance.now()
    let isAnswering: boolean
    try {
      isAnswering = this.#channel.isAnswering()
    } catch (closed) {
      for (const waiter of this.#waiting.keys()) {
        this.remove(waiter)
        waiter.fail(closed)
      }
      return
    }
    if (answeredInTime === this.#answeredBefore) {
      const [first] = this.#waiting.keys()
      if (first) this.#channel.probe(first.read, first.deadline)
    }
    this.#answeredBefore = answeredInTime
    if (!isAnswering) return
    for (const [waiter, answeredAtStart] of this.#waiting) {
      if (answeredInTime === answeredAtStart || now < waiter.notBefore) continue
      this.remove(waiter)
      waiter.resume()
    }
  }
}

/** The store whose recovery is waited for. */
export interface ProbedChannel {
  /** Calls that were answered before their deadline. */
  readonly answeredInTime: number
  /** Whether the circuit is closed. Throws StoreError CLOSED when the store is closed. */
  isAnswering(): boolean
  probe(read: () => MaybePromise<unknown>, deadline: Deadline): void
}

export interface RecoveryWaiter {
  /** An instant of `performance.now()`. */
  readonly notBefore: number
  readonly deadline: Deadline
  /** A call that changes nothing. */
  readonly read: () => MaybePromise<unknown>
  resume(): void
  /** The store is closed. */
  fail(error: unknown): void
}

/** Milliseconds between two checks. */
const CHECK_MS = 25
