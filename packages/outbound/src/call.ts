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
   * A call on these terms, in a client with these settings. Its deadline `until` counts from now, over all attempts. `left` is
   * called at the end of each wait, before the promise of the wait settles, and is told whether the call was granted its turn.
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
   * Begins the wait for the turn of one attempt, under these policies (undefined: the limiter's own). The promise resolves when
   * `grant` gives the last turn that the attempt needs, and rejects when `refuse` ends the wait, as the deadline and the abort of
   * the call's signal do. An infinite deadline sets no timer.
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
   * Gives the call a turn of one limiter, with its decision (undefined without a limiter) and the semaphore's permit. If the call
   * needs the turns of further limiters, `movesOn` returns true and the wait goes on; otherwise the wait ends, and the call is
   * under way. Its outcome counts as failed until a verdict says otherwise.
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

  /**
   * Ends the wait of the call with an error: gives back the permit and the turns that it has, and rejects the promise of the
   * wait.
   */
  refuse(error: unknown): void {
    this.giveBack()
    this.#end(false)
    this.#reject(error)
  }

  /**
   * Has the call wait for another limiter of its client from now on: `stage` is its place in the list, from 0. The call waits
   * there under its key for that limiter; a call with one key for all waits under that.
   */
  goTo(stage: number): void {
    const { keys } = this.terms
    this.stage = stage
    this.key = keys[stage] ?? keys[0]
  }

  /**
   * Gives back the permit and the turns of a call that does not go out. A decision that is settled at a cost of 0 frees its units
   * for other calls; if the store fails at that, they stay charged.
   */
  giveBack(): void {
    this.permit?.release('failed').catch(() => {})
    this.permit = undefined
    for (const decision of this.decisions.splice(0)) decision.settle(0).catch(() => {})
  }

  /** Called at the deadline: refuses the call, unless a turn before the deadline is reserved and only comes late. */
  #expire(): void {
    this.#isOverdue = true
    this.recheck()
  }

  /**
   * Refuses the call if its deadline has passed (`#isOverdue`) and no turn is reserved that comes in time: one that was asked for
   * with this deadline or an earlier one (`reservation.until`). Called at the deadline, and when the call loses its reservation.
   */
  recheck(): void {
    const { reservation, until } = this
    // Whether a reserved turn still comes in time is for the store to say, and not for a timer that may be late.
    const comesInTime = reservation !== undefined && reservation.until <= until
    if (this.#isOverdue && !comesInTime) this.refuse(this.exceeded(this.reason))
  }

  /** The error with which this call is refused. `decision` is that of the limiter, if the limiter denied the call. */
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
 * The decision that allowed the call of a response, for example to settle its cost: of several decisions the last one, or the
 * last one by the limiter with the given name. Undefined for a response that did not come through `limitFetch` or `limitAxios`.
 */
export function decisionOf(response: object, limiter?: string): Decision | undefined {
  const known = decisionsByResponse.get(response) ?? []
  return known.findLast((decision) => limiter === undefined || decision.limiter === limiter)
}

/**
 * Keeps the decisions that allowed the call of a response, for `decisionOf`. `own` are those of this client. `inner` is the
 * response from which this one was made, if it is another object: the decisions of clients within this one are kept with it, and
 * come first.
 */
export function remember(response: object, own: readonly Decision[], inner: object = response): void {
  decisionsByResponse.set(response, [...(decisionsByResponse.get(inner) ?? []), ...own])
}

/** Any copy of this package knows the decisions of calls that another one sent. */
const decisionsByResponse = inCommon('outbound.decisions', () => new WeakMap<object, readonly Decision[]>())
