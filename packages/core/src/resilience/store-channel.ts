import { nowMs } from '../values/clock.js'
import type { Ask, Caller, MaybePromise, Receiver, Store } from '../stores/store.js'
import { codeOf, StoreError, type StoreFailure } from '../values/errors.js'
import { Circuit } from './circuit.js'
import type { Deadline, DeadlineEntry, Traffic } from './deadline.js'
import type { BegunCall } from './denial-cache.js'
import { failureOf, type Health, isOutage, processHealth, SILENCES } from './failure.js'

/**
 * All calls of this process to one store, shared by the limiters that use it. A bounded number is in flight. Further calls wait
 * here in order, and are dropped unsent when their deadline passes. While the circuit is open, `refusal` forbids new ones.
 */
export class StoreChannel implements Traffic {
  readonly #circuit = new Circuit<Error>()
  readonly #health: Health
  readonly #mostPending: number
  /** Calls that wait for room, the oldest first. */
  readonly #queue = new Set<PendingCall<unknown>>()
  /** Calls that were sent and have no outcome, whether or not their callers still wait. */
  #inFlight = 0
  /** Calls in flight whose deadline has passed, the oldest first, with the instant at which that was noted. */
  readonly #overdue = new Map<PendingCall<unknown>, number>()
  /** Calls that were answered, in time or not, and those of them that were answered before their deadline. */
  answered = 0
  answeredInTime = 0
  /** Bookings that wait until the store answers again. */
  awaitingRecovery = 0
  #isStarted = false
  /** While the store connects for the first time, calls wait for that instead of their deadline. */
  #isStarting = false
  /** Whether the last event of a call that was sent is that its deadline passed. */
  #isSilent = false

  /**
   * Makes the channel to `store`, by which all limiters of this process send it their calls. The store starts with the first call.
   * `#health` warns of outages, if the store has an address (`endpoint`). `#mostPending` bounds the calls that wait for an answer.
   */
  constructor(readonly store: Store) {
    this.#health = processHealth(store.endpoint)
    this.#mostPending = store.maxPending ?? MOST_PENDING
  }

  get waiting(): number {
    return this.#queue.size
  }

  /**
   * Why no call may be made now: the failure that has opened the circuit, or that too many calls wait; undefined if one may.
   * @throws {StoreError} CLOSED when the store is closed.
   */
  refusal(): Error | undefined {
    const refusal = this.#circuit.open ?? this.#overload()
    if (refusal) this.store.now() // throws if the store is closed, which is the better reason
    return refusal
  }

  /**
   * Makes a call for `request`, whose outcome `receiver` gets. A decision is about `cost` units of `key`; `asking` says which kind,
   * by default a `consume`. If no call may be made now, does nothing and returns why (`refusal`).
   */
  submit<T>(
    request: StoreRequest<T>,
    receiver: LateReceiver<T>,
    key: string,
    cost: number,
    asking?: Asking,
  ): Error | undefined {
    const refusal = this.refusal()
    if (!refusal) this.#sendOrQueue(new PendingCall(request, receiver, key, cost, asking))
    return refusal
  }

  /**
   * Sends a call to the store now, or puts it into the queue: while the store starts (connects for the first time), while other calls
   * are queued, so that calls keep their order, or if as many as may be are under way (`#hasRoom`). Its deadline begins now, or when the
   * store has started.
   */
  #sendOrQueue<T>(call: PendingCall<T>): void {
    if (!this.#isStarted) this.#start()
    if (!this.#isStarting) call.beginDeadline()
    if (this.#isStarting || this.#queue.size > 0 || !this.#hasRoom()) this.#queue.add(call)
    else this.#sendNow(call)
  }

  /** Calls the store by `act`, and promises its answer. The deadline counts from `since`, an instant of `nowMs`; 0 is now. */
  send<T>(act: (caller: Caller) => MaybePromise<T>, deadline: Deadline, since = 0): Promise<T> {
    return new Promise((answered, failed) => void this.sendFor({ answered, failed }, act, deadline, since))
  }

  /**
   * Calls the store by `act`, whether or not calls may be made now; `receiver` gets the outcome. A receiver with `overdue` waits on
   * after the deadline, until the call ends or it calls `leave` on the returned call. The deadline counts from `since`, the instant
   * (of `nowMs`) of an earlier step; 0 is now. What the call asks is in `act` alone, so its other fields mean nothing.
   */
  sendFor<T>(
    receiver: LateReceiver<T>,
    act: (caller: Caller) => MaybePromise<T>,
    deadline: Deadline,
    since = 0,
  ): PendingCall<T> {
    const request = { channel: this, deadline, ask: (each: PendingCall<T>) => each.receive(act(each)) }
    const call = new PendingCall<T>(request, receiver, '', 0, { kind: 'consume', maxWait: 0, since })
    this.#sendOrQueue(call)
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

  /** Tests the store by `read`, which changes nothing, if a probe is due and there is room. A failure is only counted. */
  probe(read: () => MaybePromise<unknown>, deadline: Deadline): void {
    if (!this.#circuit.claimProbe() || !this.#hasRoom()) return
    this.send(read, deadline).catch(() => {})
  }

  /**
   * Notes that a call in flight was answered or failed, and sends those that wait for its room. A call that was lost, without an
   * answer for a minute, had left its room before. A call that the store dropped before it was sent (`unsent`) is not counted as
   * answered, because it shows nothing about the server.
   */
  callEnded<T>(call: PendingCall<T>): void {
    const wasLost = call.isOverdue && !this.#overdue.delete(call)
    if (!wasLost) this.#inFlight--
    if (!call.unsent) {
      this.#isSilent = false
      this.answered++
    }
    if (this.#queue.size > 0) this.#sendQueued()
  }

  /** Notes that the store answered a call within its deadline: closes the circuit, and may end an outage. */
  callAnsweredInTime(): void {
    this.answeredInTime++
    if (this.#circuit.failures > 0) this.#circuit.succeeded()
    if (this.#health.outage) this.#health.decided()
  }

  /**
   * Notes that a call failed, or that its deadline passed (`hasTimedOut`), and returns the failure as its caller gets it. A failure
   * that the next call would meet too (SILENCES), such as a timeout, may open the circuit; any other error is an answer and closes
   * it. A misuse counts as neither. An `unsent` call counts only while the store is silent (the last call that was sent got no
   * answer in time), as it says nothing about a store that answers others.
   */
  callFailed<T>(error: unknown, call: PendingCall<T>, hasTimedOut: boolean): unknown {
    const { request, unsent, isInFlight } = call
    if (hasTimedOut && isInFlight) this.#overdue.set(call, nowMs())
    if (!isOutage(error)) return error
    const failure = this.explained(error)
    if (hasTimedOut && !unsent) this.#isSilent = true
    const saysNothing = unsent && !this.#isSilent
    if (saysNothing) return failure
    this.#health.degraded(failure)
    const isSilence = (SILENCES as readonly StoreFailure[]).includes(failureOf(error))
    if (isSilence) this.#circuit.failed(failure, request.deadline.ms)
    else this.#circuit.succeeded()
    return failure
  }

  /**
   * Returns the failure as callers get it. In place of a timeout, a lost connection or a refusal (OF_CONNECTION) they get the reason
   * why the store is not connected (`trouble`), such as a wrong password, if the store knows it. Whether the call may have been
   * carried out (`sent`) stays as it is.
   */
  explained(error: Error): Error {
    const trouble = OF_CONNECTION.has(failureOf(error)) ? this.store.trouble?.() : undefined
    if (!trouble) return error
    const { sent = true } = error as Partial<StoreError>
    if ((trouble as Partial<StoreError>).sent === sent) return trouble
    return new StoreError(codeOf(failureOf(trouble)), trouble.message, { cause: trouble.cause, sent })
  }

  /** Removes a call whose caller waits no longer from the queue, if it is still there, so that it is not sent. */
  drop<T>(call: PendingCall<T>): void {
    this.#queue.delete(call)
  }

  /**
   * Starts the store with the first call. If it has to connect first, calls are queued meanwhile (`#isStarting`). They begin their
   * deadlines, and are sent, only when that has succeeded or failed.
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
    Promise.resolve(starting).then(begin, begin)
  }

  /**
   * Sends queued calls, the oldest first, while fewer are under way than may be. A call whose deadline has passed expires instead, unless
   * its receiver has an `overdue`, by which it only hears of that and the call is still to be carried out.
   */
  #sendQueued(): void {
    for (const next of this.#queue) {
      if (!this.#hasRoom()) return
      this.#queue.delete(next)
      const { deadline } = next.request
      if (!next.receiver.overdue && deadline.isOver(next)) deadline.expire(next)
      else this.#sendNow(next)
    }
  }

  /** Sends a call, which counts as in flight from now on. */
  #sendNow<T>(call: PendingCall<T>): void {
    this.#inFlight++
    if (call.isOverdue) this.#overdue.set(call, nowMs())
    call.start()
  }

  /**
   * Whether one more call may be sent, as fewer than MOST_IN_FLIGHT are under way. If not, calls that are overdue for a minute (LOST_MS)
   * are first counted as ended, because some clients never settle a call that was lost.
   */
  #hasRoom(): boolean {
    if (this.#inFlight < MOST_IN_FLIGHT) return true
    const lost = nowMs() - LOST_MS
    for (const [call, since] of this.#overdue) {
      if (since > lost) break
      this.#overdue.delete(call)
      this.#inFlight--
    }
    return this.#inFlight < MOST_IN_FLIGHT
  }

  /** Returns the error for a further call if as many wait, sent or not, as `maxPending` allows; undefined while there is room. */
  #overload(): StoreError | undefined {
    if (!this.#isStarting && this.#hasRoom()) return undefined // enough for nearly every call
    if (this.#inFlight + this.waiting + this.awaitingRecovery < this.#mostPending) return undefined
    return new StoreError('STORE_OVERLOADED', `${this.#mostPending} calls wait for its answer`)
  }
}

/** One call to a store, from its request to its outcome. It is also the caller that the store sees and answers. */
export class PendingCall<T> implements Caller, Receiver<T>, DeadlineEntry {
  gone = false
  unsent = true
  isOverdue = false
  since: number
  endsAt = 0
  before: DeadlineEntry | undefined = undefined
  after: DeadlineEntry | undefined = undefined
  isInFlight = false
  /** What a decision asks, its longest wait, and its beginning if the denial cache is to record the answer. */
  readonly kind: Ask
  readonly maxWait: number
  begun: BegunCall | undefined = undefined

  /**
   * Makes a call that waits to be sent to the store: `request` sends it, `receiver` gets its outcome. A decision is about
   * `cost` units of `key`.
   */
  constructor(
    readonly request: StoreRequest<T>,
    readonly receiver: LateReceiver<T>,
    readonly key: string,
    readonly cost: number,
    { kind, maxWait, since = 0 }: Asking = CONSUME,
  ) {
    this.kind = kind
    this.maxWait = maxWait
    this.since = since
  }

  /** Notes that the store keeps the call back, or sends it. */
  queued(isQueued: boolean): void {
    this.unsent = isQueued
  }

  /** Begins the deadline of the call, counted from `since` if that is an earlier instant. */
  beginDeadline(): void {
    const now = nowMs()
    this.since ||= now
    this.request.deadline.begin(this, now)
  }

  /**
   * Sends the call to the store by its `request`. `begun` is the denial cache's note of it, by which its answer is judged later. An error
   * that the store throws at once counts as the call's failure.
   */
  start(): void {
    const { request } = this
    this.unsent = false
    this.isInFlight = true
    try {
      this.begun = request.ask(this)
    } catch (error) {
      this.receive(Promise.reject(error))
    }
  }

  /**
   * Ends the call because its deadline has passed: it is removed from the queue, and its receiver gets the failure mode's answer
   * or the error, which says whether the call was sent. A receiver that waits beyond the deadline (`overdue`) is only informed.
   */
  expire(error: StoreError): void {
    const failure = this.unsent ? new StoreError('STORE_TIMEOUT', error.message, { sent: false }) : error
    const { channel } = this.request
    this.isOverdue = true
    if (this.receiver.overdue) {
      return this.receiver.overdue(channel.callFailed(failure, this, true) as StoreError)
    }
    this.gone = true
    channel.drop(this)
    this.#settleFailed(failure)
  }

  /** Ends the wait of a receiver that waits beyond the deadline. If the call is still queued, it is not sent any more. */
  leave(): void {
    if (this.gone) return
    this.gone = true
    this.request.channel.drop(this)
    this.request.deadline.end(this)
  }

  /** Ends the call with this value or promise, but never before the function that made the call has returned. */
  receive(answer: MaybePromise<T>): undefined {
    Promise.resolve(answer).then(
      (value) => this.answered(value),
      (error: unknown) => this.failed(error),
    )
  }

  /**
   * Gets the store's answer, has the request record it, and passes it to the receiver. A receiver that has given up (`gone`) gets
   * it by `answeredTooLate` instead, to undo what was charged. An answer after the deadline does not count as one in time. Does
   * nothing if the call has ended already.
   */
  answered(answer: T): void {
    const { request, receiver } = this
    if (!this.#end()) return
    if (this.gone) return receiver.answeredTooLate?.(answer)
    if (!this.isOverdue) {
      request.deadline.end(this)
      request.channel.callAnsweredInTime()
    }
    try {
      request.noteAnswer?.(this, answer)
    } catch (error) {
      return receiver.failed(error)
    }
    receiver.answered(answer, this.since)
  }

  /** Gets the failure of the call, and ends it as `#settleFailed` does, unless it has ended or the receiver has given up. */
  failed(error: unknown): void {
    if (!this.#end() || this.gone) return
    this.request.deadline.end(this)
    this.unsent = false
    this.#settleFailed(error)
  }

  /** Notes that the call has ended, so that the next one is sent. Returns false, and does nothing, if it was not in flight. */
  #end(): boolean {
    if (!this.isInFlight) return false
    this.isInFlight = false
    this.request.channel.callEnded(this)
    return true
  }

  /** Has the channel count the failure, then passes the request's answer to it (`answerByFailureMode`) to the receiver, or else the error. */
  #settleFailed(error: unknown): void {
    const { request, receiver } = this
    const hasTimedOut = this.gone // one that failed in time is not gone here
    const failure = request.channel.callFailed(error, this, hasTimedOut)
    if (!request.answerByFailureMode) return receiver.failed(failure)
    let answer: T
    try {
      answer = request.answerByFailureMode(this, failure)
    } catch (final) {
      return receiver.failed(final)
    }
    receiver.answered(answer, this.since)
  }
}

/** How a decision is asked for, and the instant (of `nowMs`) from which its deadline counts; 0 is when it is submitted. */
export interface Asking {
  readonly kind: Ask
  readonly maxWait: number
  readonly since?: number | undefined
}

const CONSUME: Asking = { kind: 'consume', maxWait: 0 }

/** The way to ask a store, and to answer in its place: for one call, or for all calls of a keyspace. */
export interface StoreRequest<T> {
  readonly channel: StoreChannel
  readonly deadline: Deadline
  /** Asks the store, which answers `call` later. Returns the beginning of the call if the denial cache is to record the answer. */
  ask(call: PendingCall<T>): BegunCall | undefined
  /** Records an answer of the store. */
  noteAnswer?(call: PendingCall<T>, answer: T): void
  /** The answer that the caller gets in place of the store's. Throws where that is the failure. */
  answerByFailureMode?(call: PendingCall<T>, failure: unknown): T
}

/** The receiver of a call. One with `overdue` waits for the answer beyond the deadline. */
export interface LateReceiver<T> extends Pick<Receiver<T>, 'failed'> {
  /** The answer, and the instant (of `nowMs`) from which the deadline counted. */
  answered(answer: T, since: number): void
  /** The deadline has passed without an answer. */
  overdue?(error: StoreError): void
  /** The answer came after the caller had left. */
  answeredTooLate?(answer: T): void
}

/** Failures that the store's `trouble` explains. A server that refused the log-in refuses calls with less than that. */
const OF_CONNECTION: ReadonlySet<StoreFailure> = new Set(['timeout', 'unavailable', 'forbidden'])

/** Calls of a process that may wait for answers, unless the store sets another number, and those of them that may be sent. */
const MOST_PENDING = 10_000
const MOST_IN_FLIGHT = 1000
const LOST_MS = 60_000
