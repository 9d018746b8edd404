import { type CallOutcome, type Decision, InputError, type Permit, type Policy } from '@sluice/core'
import {
  checkCost,
  clearTimer,
  inCommon,
  nowMs,
  onAbort,
  setTimer,
  type TimerHandle,
} from '@sluice/core/internal'
import { type ExceededReason, RateLimitExceededError } from './exceeded.js'
import type { WaitingSettings } from './waiting-options.js'

/** The terms of a call to its queue, with all defaults applied. */
export interface CallTerms {
  /** One for each limiter, in their order, or one for all; the first is the key of the call in events and pauses. */
  readonly keys: readonly [string, ...string[]]
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
  /** Until when it waits, over all its attempts; on the clock of `nowMs`. Infinity: for as long as it takes. */
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

  /** Place of the limiter whose turn it waits for, among those of its queue, and its key there. */
  stage = 0
  key: string
  /** The decision of the last limiter. Undefined without a limiter. */
  decision: Decision | undefined
  /** The decisions that gave the current attempt its turns, in the order of their limiters. */
  decisions: Decision[] = []
  permit: Permit | undefined
  isUnderWay = false
  /** When the current attempt went out, on the clock of `nowMs`. */
  sentAt = 0
  /** The meaning of the answer to the current attempt for adaptive limits, and how long it took. */
  outcome: CallOutcome = 'failed'
  tookMs = 0

  /** The promise that the caller has. Undefined for calls that a queue cannot clear. */
  result: Promise<unknown> | undefined

  /** Ends the delay before a retry. */
  delay: TimerHandle | undefined
  #stopListening: (() => void) | undefined
  #deadline: TimerHandle | undefined
  #isOverdue = false
  #resolve!: () => void
  #reject!: (error: unknown) => void

  /**
   * A call that waits for a turn under each of its keys. `left` is called at the end of each wait, before its promise settles.
   * @throws {InputError} INVALID_COST, INVALID_PRIORITY.
   */
  constructor(
    readonly terms: CallTerms,
    readonly settings: WaitingSettings,
    readonly left: (call: QueuedCall, isGranted: boolean) => void,
    /** Called with each turn: whether the call has to wait for a further one before it goes out. */
    readonly movesOn?: (call: QueuedCall) => boolean,
  ) {
    const { keys, cost, priority, maxWaitMs } = terms
    checkCost(cost)
    if (typeof priority !== 'number' || Number.isNaN(priority)) {
      throw new InputError('INVALID_PRIORITY', `priority must be a number, got ${String(priority)}`)
    }
    this.answeredKey = this.key = keys[0]
    this.until = nowMs() + maxWaitMs
  }

  /** Whether it is in the queue of its key. */
  get isQueued(): boolean {
    return this.place >= 0
  }

  /**
   * Begins the wait for a turn under these policies, undefined for the limiter's own. The promise resolves when `grant`
   * gives the turn, and rejects when `refuse` ends the wait, as the deadline and the abort of the call's signal do.
   */
  wait(policies: readonly Policy[] | undefined): Promise<void> {
    const { signal } = this.terms
    this.policies = policies
    this.reason = 'queue'
    this.decisions = []
    if (this.until < Infinity) {
      this.#deadline = setTimer(() => this.#expire(), Math.max(0, this.until - nowMs()))
    }
    this.#stopListening = signal && onAbort(signal, () => this.refuse(signal.reason))
    return new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
  }

  /**
   * Gives the call a turn of one limiter, with its decision and the semaphore's permit. If further limiters are to be
   * waited for, the wait goes on (`movesOn`); otherwise it ends, and the call is under way.
   */
  grant(decision: Decision | undefined, permit: Permit | undefined): void {
    this.decision = decision
    if (decision) this.decisions.push(decision)
    this.permit = permit
    if (this.movesOn?.(this)) return
    this.isUnderWay = true
    this.sentAt = nowMs()
    this.outcome = 'failed'
    this.#end(true)
    this.#resolve()
  }

  /** Rejects the call, and gives back the turns that it got before. */
  refuse(error: unknown): void {
    this.giveBack()
    this.#end(false)
    this.#reject(error)
  }

  /** Notes that the call waits for the limiter at this place of its list from now on, under the key for that. */
  goTo(stage: number): void {
    const { keys } = this.terms
    this.stage = stage
    this.key = keys[stage] ?? keys[0]
  }

  /** Gives back the permit and the turns of a call that does not go out: settled at a cost of 0, they are free for others. */
  giveBack(): void {
    void this.permit?.release('failed')
    this.permit = undefined
    for (const decision of this.decisions.splice(0)) decision.settle(0).catch(() => {})
  }

  /** Notes that the deadline has passed, and refuses the call unless a turn before it is reserved, which may only be late. */
  #expire(): void {
    this.#isOverdue = true
    this.recheck()
  }

  /** Refuses the call if its deadline has passed and no reserved turn comes in time. Called when its reservation changes. */
  recheck(): void {
    const { reservation, until } = this
    // Whether a reserved turn still comes in time is for the store to say, and not for a timer that may be late.
    const comesInTime = reservation !== undefined && reservation.until <= until
    if (this.#isOverdue && !comesInTime) this.refuse(this.exceeded(this.reason))
  }

  /** The error with which this call is refused. */
  exceeded(reason: ExceededReason, decision?: Decision): RateLimitExceededError {
    return new RateLimitExceededError(this.key, reason, decision)
  }

  /** Ends the wait: stops its timers, no longer listens for an abort, and reports whether the call was granted its turn. */
  #end(isGranted: boolean): void {
    this.#isOverdue = false
    if (this.#deadline !== undefined) clearTimer(this.#deadline)
    if (this.delay !== undefined) clearTimer(this.delay)
    this.#stopListening?.()
    this.left(this, isGranted)
  }
}

/**
 * The decision that allowed the call of a response, for example to settle its cost: that of the limiter with the given name,
 * or the latest. Undefined for a response that did not come through `limitFetch` or `limitAxios`.
 */
export function decisionOf(response: object, limiter?: string): Decision | undefined {
  const known = decisionsByResponse.get(response) ?? []
  return known.findLast((decision) => limiter === undefined || decision.limiter === limiter)
}

/** Keeps the decisions of a response's call. `inner` is the response from which this one was made, if it is another object. */
export function remember(response: object, own: readonly Decision[], inner: object = response): void {
  decisionsByResponse.set(response, [...(decisionsByResponse.get(inner) ?? []), ...own])
}

/** Any copy of this package knows the decisions of calls that another one sent. */
const decisionsByResponse = inCommon('outbound.decisions', () => new WeakMap<object, readonly Decision[]>())
