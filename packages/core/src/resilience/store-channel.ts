import { nowMs } from '../values/clock.js'
import { type Cohort, InFlight } from '../stores/in-flight.js'
import type { Ask, Caller, MaybePromise, Receiver, Store } from '../stores/store.js'
import { codeOf, StoreError, type StoreFailure } from '../values/errors.js'
import { Circuit } from './circuit.js'
import type { Deadline, DeadlineEntry, Traffic } from './deadline.js'
import type { BegunCall } from './denial-cache.js'
import { failureOf, type Health, isOutage, processHealth, SILENCES } from './failure.js'

/**
 * All calls of this process to one store, shared by the limiters that use it. A bounded number of calls is in flight.
 * Further calls wait here in order, and are dropped unsent when their deadline passes. While the circuit is open, none is
 * sent.
 */
export class StoreChannel implements Traffic {
  readonly #circuit = new Circuit<Error>()
  readonly #inFlight = new InFlight(MOST_IN_FLIGHT)
  readonly #health: Health
  readonly #mostPending: number
  /** Calls that wait for room, the oldest first. */
  readonly #queue = new Set<PendingCall<unknown>>()
  /** Calls that were answered, in time or not. */
  answered = 0
  /** Calls that were answered before their deadline. */
  answeredInTime = 0
  /** Bookings that wait until the store answers again. */
  awaitingRecovery = 0
  #isStarted = false
  /** While the store connects for the first time, calls wait for that instead of their deadline. */
  #isStarting = false
  /** Whether the last event of a call that was sent is that its deadline passed. */
  #isSilent = false

  /** The channel to one store. Outages of a store with an address are warnings of the process. */
  constructor(readonly store: Store) {
    this.#health = processHealth(store.endpoint)
    this.#mostPending = store.maxPending ?? MOST_PENDING
  }

  /** Calls that wait for room. */
  get waiting(): number {
    return this.#queue.size
  }

  /**
   * Why no call may be sent now; undefined when one may.
   * @throws {StoreError} CLOSED when the store is closed.
   */
  refusal(): Error | undefined {
    const refusal = this.#circuit.open ?? this.#overload()
    if (refusal) this.store.now() // throws if the store is closed, which is the better reason
    return refusal
  }

  /** Sends a call when there is room and the store has started. Its receiver gets nothing before this has returned. */
  submit<T>(call: PendingCall<T>): void {
    if (!this.#isStarted) this.#start()
    const now = this.#isStarting ? 0 : call.beginDeadline()
    const mustWait = this.#isStarting || this.#queue.size > 0 || this.#inFlight.room <= 0
    if (mustWait) this.#queue.add(call)
    else call.start(this.#inFlight, now)
  }

  /** Carries out `act`, with a promise for the answer. The deadline counts from now, or from an earlier instant `since`. */
  send<T>(act: (caller: Caller) => MaybePromise<T>, deadline: Deadline, since = 0): Promise<T> {
    return new Promise((answered, failed) => void this.sendFor({ answered, failed }, act, deadline, since))
  }

  /** Carries out `act` for a receiver that may wait for the answer beyond the deadline, and can leave the returned call. */
  sendFor<T>(
    receiver: LateReceiver<T>,
    act: (caller: Caller) => MaybePromise<T>,
    deadline: Deadline,
    since = 0,
  ): PendingCall<T> {
    const request: StoreRequest<T> = { ask: (call) => call.receive(act(call)) }
    const call = new PendingCall(this, request, deadline, receiver)
    call.since = since
    this.submit(call)
    return call
  }

  /**
   * Whether the store is thought to answer: the circuit is closed.
   * @throws {StoreError} CLOSED when the store is closed.
   */
  isAnswering(): boolean {
    this.store.now() // throws if the store is closed
    return this.#circuit.open === undefined
  }

  /** Whether there is room for one more booking that waits until the store answers again. */
  get canAwaitRecovery(): boolean {
    return this.awaitingRecovery < this.#mostPending
  }

  /** While the circuit is open, sends `read` to test the store, unless a probe was sent a moment ago. */
  probeIfOpen(read: () => MaybePromise<unknown>, deadline: Deadline): void {
    if (this.#circuit.open) this.probe(read, deadline)
  }

  /** Sends `read` to test the store, unless a probe was sent a moment ago. No caller waits for the answer. */
  probe(read: () => MaybePromise<unknown>, deadline: Deadline): void {
    if (!this.#circuit.claimProbe() || this.#inFlight.room <= 0) return
    this.send(read, deadline).catch(() => {})
  }

  /**
   * Notes that a call which was sent has ended, answered or failed, and sends the next ones that wait for room.
   * `cohort` is the group in which it was counted as in flight. A call that the store dropped `unsent` says nothing
   * about the server, and does not count as answered.
   */
  callEnded(cohort: Cohort, unsent: boolean): void {
    this.#inFlight.end(cohort)
    if (!unsent) {
      this.#isSilent = false
      this.answered++
    }
    this.#sendQueued()
  }

  /** Notes that the store answers: closes the circuit and ends an outage. */
  callAnsweredInTime(): void {
    this.answeredInTime++
    if (this.#circuit.failures > 0) this.#circuit.succeeded()
    if (this.#health.outage) this.#health.decided()
  }

  /**
   * Notes that a call failed, or that its deadline passed: silence may open the circuit, and any answer of the store
   * closes it. One that was never sent counts only while the store is silent. Returns the failure as the caller is to
   * get it.
   */
  callFailed<T>(error: unknown, { deadline, unsent }: PendingCall<T>, isOverdue: boolean): unknown {
    if (!isOutage(error)) return error
    const failure = this.#explained(error)
    if (isOverdue && !unsent) this.#isSilent = true
    // A call that was never sent says nothing about a store that answers others.
    if (unsent && !this.#isSilent) return failure
    this.#health.degraded(failure)
    if (SILENCES.includes(failureOf(error))) this.#circuit.failed(failure, deadline.ms)
    else this.#circuit.succeeded()
    return failure
  }

  /** The failure as callers get it: while the store is not connected, the reason for that, such as a wrong password. */
  #explained(error: Error): Error {
    const trouble = OF_CONNECTION.has(failureOf(error)) ? this.store.trouble?.() : undefined
    if (!trouble) return error
    const { sent = true } = error as Partial<StoreError>
    if ((trouble as Partial<StoreError>).sent === sent) return trouble
    return new StoreError(codeOf(failureOf(trouble)), trouble.message, { cause: trouble.cause, sent })
  }

  /** Takes a call whose caller waits no longer out of those that wait for room, so that it is not sent. */
  drop<T>(call: PendingCall<T>): void {
    this.#queue.delete(call)
  }

  /**
   * Has the store connect, with the first call. Calls wait until it has or has failed, and only then begin their
   * deadlines.
   */
  #start(): void {
    this.#isStarted = true
    const starting = this.store.start?.()
    if (!starting) return
    this.#isStarting = true
    const begin = (): void => {
      this.#isStarting = false
      for (const pending of this.#queue) pending.beginDeadline()
      this.#sendQueued()
    }
    starting.then(begin, begin)
  }

  /** Sends the calls that wait, oldest first, as far as there is room. */
  #sendQueued(): void {
    for (const next of this.#queue) {
      if (this.#inFlight.room <= 0) return
      this.#queue.delete(next)
      next.startOrDrop(this.#inFlight, nowMs())
    }
  }

  /** Why no further call is taken: as many wait as `maxPending` allows. */
  #overload(): StoreError | undefined {
    if (!this.#isStarting && this.#inFlight.room > 0) return undefined
    if (this.#inFlight.count + this.waiting + this.awaitingRecovery < this.#mostPending) return undefined
    return new StoreError('STORE_OVERLOADED', `${this.#mostPending} calls wait for its answer`)
  }
}

/**
 * One call to a store, from its request to its answer or to what its caller gets in place of one. It is also the caller that
 * the store sees and answers.
 */
export class PendingCall<T> implements Caller, Receiver<T>, DeadlineEntry {
  gone = false
  unsent = true
  /** May be set before the call is submitted. */
  since = 0
  endsAt = 0
  before: DeadlineEntry | undefined = undefined
  after: DeadlineEntry | undefined = undefined
  #isOverdue = false
  /** While the call is sent and has no outcome. */
  #cohort: Cohort | undefined = undefined
  /** Of a decision: what is asked, and its beginning if the denial cache is to record the answer. */
  kind: Ask = 'consume'
  key = ''
  cost = 0
  maxWait = 0
  begun: BegunCall | undefined = undefined

  /** A call that `channel` sends for `request`. A `receiver` that is not given is set before the call has an outcome. */
  constructor(
    readonly channel: StoreChannel,
    readonly request: StoreRequest<T>,
    readonly deadline: Deadline,
    public receiver?: LateReceiver<T>,
  ) {}

  /** Begins the time within which the call has to be answered, and returns that instant. */
  beginDeadline(): number {
    const now = nowMs()
    this.since ||= now
    this.deadline.begin(this, now)
    return now
  }

  /** Sends a call that has waited for room, or drops it if its deadline has passed and its receiver waits no longer. */
  startOrDrop(inFlight: InFlight, now: number): void {
    if (!this.receiver?.overdue && this.deadline.isOver(this)) this.deadline.expire(this)
    else this.start(inFlight, now)
  }

  /** Sends the call. What the store throws is its failure. */
  start(inFlight: InFlight, now: number): void {
    this.unsent = false
    this.#cohort = inFlight.begin(now)
    try {
      this.request.ask(this)
    } catch (error) {
      this.receive(Promise.reject(error))
    }
  }

  /** Ends the call because its deadline has passed. A receiver that waits longer is only informed. */
  expire(error: StoreError): void {
    const failure = this.unsent ? new StoreError('STORE_TIMEOUT', error.message, { sent: false }) : error
    this.#isOverdue = true
    if (this.receiver?.overdue) {
      return this.receiver.overdue(this.channel.callFailed(failure, this, true) as StoreError)
    }
    this.gone = true
    this.channel.drop(this)
    this.#settleFailed(failure)
  }

  /** Ends the wait of a receiver that waits beyond the deadline. If the call still waits for room, it is not sent. */
  leave(): void {
    if (this.gone) return
    this.gone = true
    this.channel.drop(this)
    this.deadline.end(this)
  }

  /**
   * Ends the call with a promise's outcome, or with a value in the next microtask, so that no receiver gets an answer
   * before the function that made the call has returned.
   */
  receive(answer: MaybePromise<T>): void {
    Promise.resolve(answer).then(
      (value) => this.answered(value),
      (error: unknown) => this.failed(error),
    )
  }

  /** Passes the store's answer to the receiver. One that has given up gets it only if it can undo what was charged. */
  answered(answer: T): void {
    if (!this.#end()) return
    if (this.gone) return this.receiver?.answeredTooLate?.(answer)
    if (!this.#isOverdue) {
      this.deadline.end(this)
      this.channel.callAnsweredInTime()
    }
    try {
      this.request.answered?.(this, answer)
    } catch (error) {
      return this.receiver!.failed(error)
    }
    this.receiver!.answered(answer)
  }

  /** Passes a failure on, unless the receiver has given up. */
  failed(error: unknown): void {
    if (!this.#end() || this.gone) return
    this.deadline.end(this)
    this.unsent = false
    this.#settleFailed(error)
  }

  /** Notes that the store has ended the call. Returns false if it had before. */
  #end(): boolean {
    const cohort = this.#cohort
    if (!cohort) return false
    this.#cohort = undefined
    this.channel.callEnded(cohort, this.unsent)
    return true
  }

  /** Passes the failure mode's answer to the receiver, or the failure itself where there is none. */
  #settleFailed(error: unknown): void {
    const failure = this.channel.callFailed(error, this, this.gone)
    if (!this.request.fallBack) return this.receiver!.failed(failure)
    let answer: T
    try {
      answer = this.request.fallBack(this, failure)
    } catch (final) {
      return this.receiver!.failed(final)
    }
    this.receiver!.answered(answer)
  }
}

/** The way to ask a store, and to answer in its place: for one call, or for all calls of a keyspace. */
export interface StoreRequest<T> {
  /** Asks the store, which answers `call` later. */
  ask(call: PendingCall<T>): void
  /** Records an answer of the store. */
  answered?(call: PendingCall<T>, answer: T): void
  /** The answer that the caller gets in place of the store's. Throws where that is the failure. */
  fallBack?(call: PendingCall<T>, failure: unknown): T
}

/** The receiver of a call. One with `overdue` waits for the answer beyond the deadline. */
export interface LateReceiver<T> extends Receiver<T> {
  /** The deadline has passed without an answer. */
  overdue?(error: StoreError): void
  /** The answer came after the caller had left. */
  answeredTooLate?(answer: T): void
}

/** A server that refused the log-in refuses calls with less than that. */
const OF_CONNECTION: ReadonlySet<StoreFailure> = new Set(['timeout', 'unavailable', 'forbidden'])

/** Calls of a process that wait for a store's answer, sent or not, unless the store sets another number. */
const MOST_PENDING = 10_000

/** Calls of a process that are sent and have no answer. */
const MOST_IN_FLIGHT = 1000
