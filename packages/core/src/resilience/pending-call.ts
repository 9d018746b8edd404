import type { Caller, MaybePromise } from '../stores/store.js'
import { StoreError } from '../values/errors.js'
import type { Deadline, DeadlineEntry } from './deadline.js'
import type { Cohort, InFlight } from './in-flight.js'

/** One call to a store, from its request to its answer. It is also the caller that the store sees. */
export class PendingCall<T> implements Caller, DeadlineEntry {
  gone = false
  unsent = true
  since = 0
  endsAt = 0
  before: DeadlineEntry | undefined = undefined
  after: DeadlineEntry | undefined = undefined
  #isQueued = true
  #isOverdue = false

  constructor(
    readonly observer: CallObserver,
    readonly call: (caller: Caller) => MaybePromise<T>,
    readonly deadline: Deadline,
    readonly resolve: (answer: T) => void,
    readonly reject: (error: unknown) => void,
    readonly answered: ((answer: T) => T) | undefined,
    readonly failed: ((error: unknown) => T) | undefined,
    readonly patient?: PatientCaller<T>,
  ) {}

  beginDeadline(): void {
    this.since = performance.now()
    this.deadline.begin(this)
  }

  /** Sends a call that has waited for room, or drops it unsent where its deadline has passed. */
  startOrDrop(inFlight: InFlight, now: number): void {
    this.#isQueued = false
    if (!this.patient && this.deadline.isOver(this)) this.deadline.expire(this)
    else this.start(inFlight, now)
  }

  start(inFlight: InFlight, now: number): void {
    this.#isQueued = false
    this.unsent = false
    const cohort = inFlight.begin(now)
    try {
      const answer = this.call(this)
      if (answer instanceof Promise) {
        answer.then(
          (value) => this.#answer(cohort, value),
          (error: unknown) => this.#fail(cohort, error),
        )
      } else this.#answer(cohort, answer)
    } catch (error) {
      this.#fail(cohort, error)
    }
  }

  expire(error: StoreError): void {
    const failure = this.unsent ? new StoreError('STORE_TIMEOUT', error.message, { sent: false }) : error
    this.#isOverdue = true
    if (this.patient) {
      this.observer.callFailed(failure, this, true)
      return this.patient.overdue(failure)
    }
    this.gone = true
    if (this.#isQueued) this.observer.callDropped()
    this.#settleFailed(failure)
  }

  /** Withdraws a patient caller. A call that is not written yet is not sent any more. */
  leave(): void {
    if (this.gone) return
    this.gone = true
    if (this.#isQueued) this.observer.callDropped()
    this.deadline.end(this)
  }

  #answer(cohort: Cohort, answer: T): void {
    this.observer.callEnded(cohort)
    if (this.gone) return this.patient?.answeredTooLate(answer)
    if (!this.#isOverdue) {
      this.deadline.end(this)
      this.observer.callAnsweredInTime()
    }
    try {
      this.resolve(this.answered ? this.answered(answer) : answer)
    } catch (error) {
      this.reject(error)
    }
  }

  #fail(cohort: Cohort, error: unknown): void {
    this.observer.callEnded(cohort)
    if (this.gone) return
    this.deadline.end(this)
    this.unsent = false
    this.#settleFailed(error)
  }

  #settleFailed(error: unknown): void {
    this.observer.callFailed(error, this, this.gone)
    try {
      if (this.failed) this.resolve(this.failed(error))
      else this.reject(error)
    } catch (instead) {
      this.reject(instead)
    }
  }
}

/** What a call reports to the channel that it goes through. */
export interface CallObserver {
  /** A call that was sent was answered or failed, perhaps after its caller had left. */
  callEnded(cohort: Cohort): void
  callAnsweredInTime(): void
  /** A call failed before its deadline, or its deadline passed. */
  callFailed(error: unknown, call: FailedCall, isOverdue: boolean): void
  /** A call that waits for room lost its caller. */
  callDropped(): void
}

export interface FailedCall extends Caller {
  readonly deadline: Deadline
}

/** A caller that waits for the answer beyond the deadline. */
export interface PatientCaller<T> {
  /** The deadline has passed without an answer. */
  overdue(error: StoreError): void
  answered(answer: T): void
  failed(error: unknown): void
  /** The answer came after the caller had left. */
  answeredTooLate(answer: T): void
}
