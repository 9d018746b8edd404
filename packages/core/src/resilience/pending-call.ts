import type { Caller, MaybePromise, Receiver } from '../stores/store.js'
import { StoreError } from '../values/errors.js'
import type { Deadline, DeadlineEntry } from './deadline.js'

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
    if (this.patient) return this.patient.overdue(this.observer.callFailed(failure, this, true) as StoreError)
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
    this.request.failed(this.observer.callFailed(error, this, this.gone))
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
  /** A call failed before its deadline, or its deadline passed. Returns the failure as its caller is to get it. */
  callFailed(error: unknown, call: FailedCall, isOverdue: boolean): unknown
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

/**
 * The number of calls that a store has not answered yet, including those whose caller has stopped waiting. It is bounded,
 * because clients queue without limit what they cannot send. A call without an answer for a minute counts as lost: some
 * clients never settle a call after its connection broke.
 */
export class InFlight {
  readonly #now: () => number
  /** The oldest first. Single calls are not recorded: that costs more than the precision is worth. */
  #cohorts: Cohort[] = []
  #count = 0

  /** `now` in milliseconds, of a clock that does not run back. */
  constructor(now = (): number => performance.now()) {
    this.#now = now
  }

  get count(): number {
    return this.#count
  }

  get isFull(): boolean {
    if (this.#count < MOST_IN_FLIGHT) return false
    const lost = this.#now() - LOST_MS - COHORT_MS
    const [oldest] = this.#cohorts
    if (oldest && oldest.since <= lost) {
      this.#count -= oldest.calls
      oldest.isLost = true
      this.#cohorts.shift()
    }
    return this.#count >= MOST_IN_FLIGHT
  }

  /** Counts a call that began at `since`. Pass the result to `end` once the call is answered or has failed. */
  begin(since: number): Cohort {
    let latest = this.#cohorts.at(-1)
    if (!latest || since - latest.since >= COHORT_MS) {
      latest = { since, calls: 0, isLost: false }
      this.#cohorts = [...this.#cohorts.filter(({ calls }) => calls > 0), latest]
    }
    latest.calls++
    this.#count++
    return latest
  }

  end(cohort: Cohort): void {
    cohort.calls--
    if (!cohort.isLost) this.#count--
  }
}

/** Calls that began within one second. */
export interface Cohort {
  readonly since: number
  calls: number
  isLost: boolean
}

const MOST_IN_FLIGHT = 1000
const LOST_MS = 60_000
const COHORT_MS = 1000
