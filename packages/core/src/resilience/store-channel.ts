import { STORE_FAILURES, StoreError, type StoreFailure } from '../values/errors.js'
import type { Caller, MaybePromise, Store } from '../stores/store.js'
import { Circuit } from './circuit.js'
import type { Deadline, Traffic } from './deadline.js'
import { failureOf, isOutage, isSilence } from './failure.js'
import { OutageWarning } from './outage-warning.js'
import {
  type CallObserver,
  type Cohort,
  type FailedCall,
  InFlight,
  type PatientCaller,
  PendingCall,
  receive,
  type StoreRequest,
} from './pending-call.js'
import { RecoveryQueue } from './recovery-queue.js'

/**
 * All calls of this process to one store, shared by the limiters that use it. A bounded number of calls is in flight.
 * Further calls wait here in order, and are dropped unsent when their deadline passes. While the circuit is open, none is
 * sent.
 */
export class StoreChannel implements Traffic, CallObserver {
  readonly #store: Store
  readonly #circuit = new Circuit<Error>()
  readonly #inFlight = new InFlight()
  readonly #outage: OutageWarning
  readonly #mostPending: number
  /** Calls that wait for room, the oldest first. Dropped calls stay in the list until they are more than half of it. */
  #queue: PendingCall<unknown>[] = []
  #dropped = 0
  /** Calls that were answered, in time or not. */
  answered = 0
  /** Calls that were answered before their deadline. */
  answeredInTime = 0
  /** Bookings that wait until the store answers again. */
  readonly recovery = new RecoveryQueue(this)
  #isStarted = false
  /** While the store connects for the first time, calls wait for that instead of their deadline. */
  #isStarting = false
  /** Whether the last event of a call that was sent is that its deadline passed. */
  #isSilent = false

  constructor(store: Store) {
    this.#store = store
    this.#outage = new OutageWarning(store)
    this.#mostPending = store.maxPending ?? MOST_PENDING
  }

  /** Calls that wait for room. */
  get waiting(): number {
    return this.#queue.length - this.#dropped
  }

  /**
   * Why no call may be sent now; undefined when one may.
   * @throws {StoreError} CLOSED when the store is closed.
   */
  refusal(): Error | undefined {
    const refusal = this.#circuit.open ?? (this.#isFull ? this.#overloaded() : undefined)
    if (refusal) this.#store.now()
    return refusal
  }

  /** Sends a request, which gets its answer until the deadline, but not before this has returned. A later answer is ignored. */
  submit<T>(request: StoreRequest<T>, deadline: Deadline): void {
    this.#add(new PendingCall(this, request, deadline))
  }

  /** As `submit`, with a promise for the answer. */
  send<T>(call: (caller: Caller) => MaybePromise<T>, deadline: Deadline): Promise<T> {
    return new Promise((answered, failed) => {
      this.submit({ ask: (pending) => receive(call(pending), pending), answered, failed }, deadline)
    })
  }

  /** Sends a call whose caller waits for the answer beyond the deadline. */
  sendPatiently<T>(
    call: (caller: Caller) => MaybePromise<T>,
    deadline: Deadline,
    patient: PatientCaller<T>,
  ): PendingCall<T> {
    const request: StoreRequest<T> = {
      ask: (pending) => receive(call(pending), pending),
      answered: (answer) => patient.answered(answer),
      failed: (error) => patient.failed(error),
    }
    const pending = new PendingCall(this, request, deadline, patient)
    this.#add(pending)
    return pending
  }

  /**
   * Whether the circuit is closed.
   * @throws {StoreError} CLOSED when the store is closed.
   */
  isAnswering(): boolean {
    this.#store.now()
    return this.#circuit.open === undefined
  }

  /** Whether there is room for one more booking that waits until the store answers again. */
  get canAwaitRecovery(): boolean {
    return this.recovery.size < this.#mostPending
  }

  /** While the circuit is open, sends `read` to test the store, unless a probe was sent a moment ago. */
  probeIfOpen(read: () => MaybePromise<unknown>, deadline: Deadline): void {
    if (this.#circuit.open) this.probe(read, deadline)
  }

  /** Sends `read` to test the store, unless a probe was sent a moment ago. No caller waits for the answer. */
  probe(read: () => MaybePromise<unknown>, deadline: Deadline): void {
    if (!this.#circuit.isProbeDue() || this.#inFlight.isFull) return
    this.send(read, deadline).catch(() => {})
  }

  callEnded(cohort: Cohort): void {
    this.#inFlight.end(cohort)
    this.#isSilent = false
    this.answered++
    this.#sendQueued()
  }

  callAnsweredInTime(): void {
    this.answeredInTime++
    if (this.#circuit.failures > 0) this.#circuit.succeeded()
    if (this.#outage.isFailing) this.#outage.answered()
  }

  callFailed(error: unknown, { deadline, unsent }: FailedCall, isOverdue: boolean): unknown {
    if (!isOutage(error)) return error
    const failure = this.#explained(error)
    if (isOverdue && !unsent) this.#isSilent = true
    // A call that was never sent says nothing about a store that answers others.
    if (unsent && !this.#isSilent) return failure
    this.#outage.failed(failure)
    if (isSilence(error)) this.#circuit.failed(failure, deadline.ms)
    else this.#circuit.succeeded()
    return failure
  }

  /** A call that got no answer while the store is not connected fails for the reason of that: a wrong password, for example. */
  #explained(error: Error): Error {
    const trouble = OF_CONNECTION.has(failureOf(error)) ? this.#store.trouble?.() : undefined
    if (!trouble) return error
    const { sent = true } = error as Partial<StoreError>
    if ((trouble as Partial<StoreError>).sent === sent) return trouble
    const { code } = STORE_FAILURES[failureOf(trouble)]
    return new StoreError(code, trouble.message, { cause: trouble.cause, sent })
  }

  callDropped(): void {
    this.#dropped++
    if (2 * this.#dropped <= this.#queue.length) return
    this.#queue = this.#queue.filter(({ gone }) => !gone)
    this.#dropped = 0
  }

  #add<T>(pending: PendingCall<T>): void {
    if (!this.#isStarted) this.#start()
    if (!this.#isStarting) pending.beginDeadline()
    const mustWait = this.#isStarting || this.#queue.length > 0 || this.#inFlight.isFull
    if (mustWait) this.#queue.push(pending)
    else pending.start(this.#inFlight, pending.since)
  }

  #start(): void {
    this.#isStarted = true
    const starting = this.#store.start?.()
    if (!starting) return
    this.#isStarting = true
    const begin = (): void => {
      this.#isStarting = false
      for (const pending of this.#queue) pending.beginDeadline()
      this.#sendQueued()
    }
    starting.then(begin, begin)
  }

  #sendQueued(): void {
    while (this.#queue.length > 0 && !this.#inFlight.isFull) {
      const next = this.#queue.shift()!
      if (next.gone) this.#dropped--
      else next.startOrDrop(this.#inFlight, performance.now())
    }
  }

  get #isFull(): boolean {
    if (!this.#isStarting && !this.#inFlight.isFull) return false
    return this.#inFlight.count + this.waiting + this.recovery.size >= this.#mostPending
  }

  #overloaded(): StoreError {
    return new StoreError('STORE_OVERLOADED', `${this.#mostPending} calls wait for its answer`)
  }
}

/** A server that refused the log-in refuses calls with less than that. */
const OF_CONNECTION: ReadonlySet<StoreFailure> = new Set(['timeout', 'unavailable', 'forbidden'])

/** Calls of a process that wait for a store's answer, sent or not, unless the store sets another number. */
const MOST_PENDING = 10_000
