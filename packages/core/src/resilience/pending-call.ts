import type { Caller, MaybePromise, Receiver } from '../stores/store.js'
import { StoreError } from '../values/errors.js'
import type { Deadline, DeadlineEntry } from './deadline.js'
import type { Cohort, InFlight } from './in-flight.js'

/** One call to a store, from its request to its answer. It is also the caller that the store sees and answers. */
export class PendingCall<T> implements Caller, Receiver<T>, DeadlineEntry {
  gone = false
  unsent = true
  since = 0
  endsAt = 0
  before: DeadlineEntry | undefined = undefined
  after: DeadlineEntry | undefined = undefined
  #isQueued = true
  #isOverdue = false
  /** While the call is sent and has no outcome. */
  #cohort: Cohort | undefined = undefined

  constructor(
    readonly observer: CallObserver,
    readonly request: StoreRequest<T>,
    readonly deadline: Deadline,
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
    this.#cohort = inFlight.begin(now)
    try {
      this.request.ask(this)
    } catch (error) {
      receive(Promise.reject(error), this)
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

  answered(answer: T): void {
    if (!this.#end()) return
    if (this.gone) return this.patient?.answeredTooLate(answer)
    if (!this.#isOverdue) {
      this.deadline.end(this)
      this.observer.callAnsweredInTime()
    }
    this.request.answered(answer)
  }

  failed(error: unknown): void {
    if (!this.#end() || this.gone) return
    this.deadline.end(this)
    this.unsent = false
    this.#settleFailed(error)
  }

  /** Ends the call in the store. Returns false if it had ended before. */
  #end(): boolean {
    const cohort = this.#cohort
    if (!cohort) return false
    this.#cohort = undefined
    this.observer.callEnded(cohort)
    return true
  }

  #settleFailed(error: unknown): void {
    this.observer.callFailed(error, this, this.gone)
    this.request.failed(error)
  }
}

/** What is asked of a store, and who gets the answer. */
export interface StoreRequest<T> extends Receiver<T> {
  /** Asks the store, which answers `call` later. */
  ask(call: PendingCall<T>): void
}

/** Hands on what a promise becomes, or a value in the next microtask: a receiver gets nothing before its call has returned. */
export function receive<T>(answer: MaybePromise<T>, receiver: Receiver<T>): void {
  Promise.resolve(answer).then(
    (value) => receiver.answered(value),
    (error: unknown) => receiver.failed(error),
  )
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
