import { type Decision, InputError, type Permit, type Policy } from '@sluice/core'
import { checkCost, onAbort } from '@sluice/core/internal'
import { type ExceededReason, RateLimitExceededError } from './exceeded.js'
import type { WaitingSettings } from './waiting-options.js'

/** What a call asks of its queue, with all defaults applied. */
export interface CallTerms {
  readonly key: string
  readonly cost: number
  readonly priority: number
  readonly maxWaitMs: number
  readonly signal: AbortSignal | undefined
}

/** A turn that is booked at the limiter, or about to be, after a permit of the semaphore. */
export interface Reservation {
  readonly cost: number
  readonly policies: readonly Policy[] | undefined
  readonly controller: AbortController
  /** The call that it is for; undefined once no call needs it. */
  call: QueuedCall | undefined
  /** The turn comes by then or not at all: the deadline of the call for which it was asked, which may be another one. */
  until: number
}

/**
 * A call of a client, over all its attempts. Before each it waits: in the queue of its key, for a retry, or in a client that is
 * paused. The wait ends with the call's turn, when it is refused, when its signal aborts, or at its deadline unless a turn
 * before it is reserved.
 */
export class QueuedCall {
  /** Until when it waits, over all its attempts; on the clock of `performance.now()`. Infinity: for as long as it takes. */
  readonly until: number
  /** Attempts so far, the current one included. */
  attempt = 0
  /** Milliseconds from the end of an attempt to the next at the earliest. */
  delayMs = 0
  /** The key that the latest reply was about. */
  answeredKey: string

  /** Undefined: the limiter's own. */
  policies: readonly Policy[] | undefined
  /** The turn that is reserved for it. */
  reservation: Reservation | undefined
  /** Its place in the heap of its key's queue, -1 outside, and the number of calls that entered before it. */
  place = -1
  order = 0
  /** Of the reply to the current attempt, and why there is no further one. */
  status: number | undefined
  givenUp: 'budget' | 'maxWait' | undefined
  /** The reason for a refusal at the deadline. */
  reason: ExceededReason = 'queue'

  /** The decision that gave the current attempt its turn. Undefined without a limiter. */
  decision: Decision | undefined
  permit: Permit | undefined
  isUnderWay = false
  /** When the current attempt went out, on the clock of `performance.now()`. */
  sentAt = 0

  /** The promise that the caller has. Undefined for calls that a queue cannot clear. */
  result: Promise<unknown> | undefined

  /** Ends the delay before a retry. */
  delay: ReturnType<typeof setTimeout> | undefined
  #stopListening: (() => void) | undefined
  #deadline: ReturnType<typeof setTimeout> | undefined
  #isOverdue = false
  #resolve!: () => void
  #reject!: (error: unknown) => void

  /**
   * `left` is called at the end of each wait, before its promise settles.
   * @throws {InputError} INVALID_COST, INVALID_PRIORITY.
   */
  constructor(
    readonly terms: CallTerms,
    readonly settings: WaitingSettings,
    readonly left: (call: QueuedCall, isGranted: boolean) => void,
  ) {
    const { key, cost, priority, maxWaitMs } = terms
    checkCost(cost)
    if (typeof priority !== 'number' || Number.isNaN(priority)) {
      throw new InputError('INVALID_PRIORITY', `priority must be a number, got ${String(priority)}`)
    }
    this.answeredKey = key
    this.until = performance.now() + maxWaitMs
  }

  /** Whether it is in the queue of its key. */
  get isQueued(): boolean {
    return this.place >= 0
  }

  /** Begins a wait, which `grant` or `refuse` ends. */
  wait(policies: readonly Policy[] | undefined): Promise<void> {
    const { signal } = this.terms
    this.policies = policies
    this.reason = 'queue'
    if (this.until < Infinity) {
      this.#deadline = setTimeout(() => this.#expire(), Math.max(0, this.until - performance.now()))
    }
    this.#stopListening = signal && onAbort(signal, () => this.refuse(signal.reason))
    return new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
  }

  /** It is the call's turn. */
  grant(decision: Decision | undefined, permit: Permit | undefined): void {
    this.decision = decision
    this.permit = permit
    this.isUnderWay = true
    this.sentAt = performance.now()
    this.#end(true)
    this.#resolve()
  }

  refuse(error: unknown): void {
    this.#end(false)
    this.#reject(error)
  }

  /** Refuses the call at its deadline. */
  #expire(): void {
    this.#isOverdue = true
    this.recheck()
  }

  /** Its reservation is another one, or none: it is refused if its deadline has passed. */
  recheck(): void {
    const { reservation, until } = this
    // The store knows better than a timer when a reserved turn comes.
    const comesInTime = reservation !== undefined && reservation.until <= until
    if (this.#isOverdue && !comesInTime) this.refuse(this.exceeded(this.reason))
  }

  exceeded(reason: ExceededReason, decision?: Decision): RateLimitExceededError {
    return new RateLimitExceededError(this.terms.key, reason, decision)
  }

  #end(isGranted: boolean): void {
    this.#isOverdue = false
    clearTimeout(this.#deadline)
    clearTimeout(this.delay)
    this.#stopListening?.()
    this.left(this, isGranted)
  }
}
