import { StoreError } from '../values/errors.js'
import type { Caller, MaybePromise, Store } from '../stores/store.js'
import { Circuit } from './circuit.js'
import type { Deadline, Traffic, Waiting } from './deadline.js'
import { isOutage, isSilence } from './outage.js'
import { Recovery } from './recovery.js'
import { type Generation, UnderWay } from './under-way.js'

/**
 * The way to one store, for all limiters of this process that use it. A bounded number of calls is under way; the others
 * wait here, in their order, and are dropped unsent when their deadline passes. None is sent while the circuit is open.
 */
export class Line implements Traffic {
  readonly #store: Store
  readonly #circuit = new Circuit<Error>()
  readonly #underWay = new UnderWay()
  readonly #mostPending: number
  /** Calls that wait for room, the oldest first. Those that were dropped stay until the others are fewer than they. */
  #queue: Sent<unknown>[] = []
  #dropped = 0
  /** Calls that were answered, in time or not. */
  answered = 0
  /** Calls that were answered before their deadline. */
  answeredInTimeSoFar = 0
  /** Those who wait until the store answers again. */
  readonly recovery = new Recovery(this)
  #isStarted = false
  /** While the store connects for the first time, calls wait for that instead of their deadline. */
  #isStarting = false
  /** Whether the latest sign of a call that was sent is that its deadline passed. */
  #isSilent = false

  constructor(store: Store) {
    this.#store = store
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

  /**
   * Sends a call as soon as there is room and waits for its answer until the deadline; from then on its caller is gone.
   * Resolves to what `answered` and `failed` make of what came; without them to that itself.
   */
  send<T>(
    call: (caller: Caller) => MaybePromise<T>,
    deadline: Deadline,
    answered?: (answer: T) => T,
    failed?: (error: unknown) => T,
  ): Promise<T> {
    // One promise and no async function: they would take more time than everything else that is done here.
    return new Promise((resolve, reject) => {
      this.#take(new Sent(this, call, deadline, resolve, reject, answered, failed))
    })
  }

  /** Sends a call whose caller goes on listening after the deadline. */
  listen<T>(call: (caller: Caller) => MaybePromise<T>, deadline: Deadline, patient: Patient<T>): Sent<T> {
    const answered = (answer: T): void => patient.answered(answer)
    const failed = (error: unknown): void => patient.failed(error)
    const sent = new Sent(this, call, deadline, answered, failed, undefined, undefined, patient)
    this.#take(sent)
    return sent
  }

  /**
   * Whether the store is not known to be silent.
   * @throws {StoreError} CLOSED when the store is closed.
   */
  answers(): boolean {
    this.#store.now()
    return this.#circuit.open === undefined
  }

  /** Whether one more may wait until the store answers again. */
  get takesWaiting(): boolean {
    return this.recovery.size < this.#mostPending
  }

  /** Sends `read` if it is time to see whether the store is back. No caller waits for its answer. */
  probe(read: () => MaybePromise<unknown>, deadline: Deadline): void {
    if (this.#circuit.open) this.look(read, deadline)
  }

  /** Sends `read` to see whether the store answers, unless that was done a moment ago. */
  look(read: () => MaybePromise<unknown>, deadline: Deadline): void {
    if (!this.#circuit.isProbeDue() || this.#underWay.isFull) return
    this.send(read, deadline).catch(() => {})
  }

  /** A call that was sent is answered or has failed, perhaps too late for its caller. */
  ended(generation: Generation): void {
    this.#underWay.end(generation)
    this.#isSilent = false
    this.answered++
    this.#sendWaiting()
  }

  #take<T>(sent: Sent<T>): void {
    if (!this.#isStarted) this.#start()
    if (!this.#isStarting) sent.await()
    const mustWait = this.#isStarting || this.#queue.length > 0 || this.#underWay.isFull
    if (mustWait) this.#queue.push(sent as Sent<unknown>)
    else sent.start(this.#underWay, sent.since)
  }

  #start(): void {
    this.#isStarted = true
    const starting = this.#store.start?.()
    if (!starting) return
    this.#isStarting = true
    const begin = (): void => {
      this.#isStarting = false
      for (const sent of this.#queue) sent.await()
      this.#sendWaiting()
    }
    starting.then(begin, begin)
  }

  #sendWaiting(): void {
    while (this.#queue.length > 0 && !this.#underWay.isFull) {
      const next = this.#queue.shift()!
      if (next.gone) this.#dropped--
      else next.startOrDrop(this.#underWay, performance.now())
    }
  }

  answeredInTime(): void {
    this.answeredInTimeSoFar++
    this.#circuit.succeeded()
  }

  /** A call failed in time, or its deadline passed. */
  failed(error: unknown, { deadline, unsent }: Tried, isOverdue: boolean): void {
    if (!isOutage(error)) return
    if (isOverdue && !unsent) this.#isSilent = true
    // A call that was never sent says nothing about a store that answers others.
    if (unsent && !this.#isSilent) return
    if (isSilence(error)) this.#circuit.failed(error, deadline.ms)
    else this.#circuit.succeeded()
  }

  /** A call that waits for room is dropped. */
  dropped(): void {
    this.#dropped++
    if (2 * this.#dropped <= this.#queue.length) return
    this.#queue = this.#queue.filter(({ gone }) => !gone)
    this.#dropped = 0
  }

  get #isFull(): boolean {
    const pending = this.#underWay.count + this.waiting + this.recovery.size
    return pending >= this.#mostPending && (this.#isStarting || this.#underWay.isFull)
  }

  #overloaded(): StoreError {
    return new StoreError('STORE_OVERLOADED', `${this.#mostPending} calls wait for its answer`)
  }
}

interface Tried extends Caller {
  readonly deadline: Deadline
}

/** A call, and the caller who waits for its answer. */
export class Sent<T> implements Caller, Waiting {
  gone = false
  unsent = true
  since = 0
  endsAt = 0
  before: Waiting | undefined = undefined
  after: Waiting | undefined = undefined
  #isQueued = true
  #isOverdue = false

  constructor(
    readonly line: Line,
    readonly call: (caller: Caller) => MaybePromise<T>,
    readonly deadline: Deadline,
    readonly resolve: (answer: T) => void,
    readonly reject: (error: unknown) => void,
    readonly answered: ((answer: T) => T) | undefined,
    readonly failed: ((error: unknown) => T) | undefined,
    readonly patient?: Patient<T>,
  ) {}

  /** The deadline counts from here. */
  await(): void {
    this.since = performance.now()
    this.deadline.begin(this)
  }

  /** There is room. A call whose time was over before is dropped unsent. */
  startOrDrop(underWay: UnderWay, now: number): void {
    this.#isQueued = false
    if (!this.patient && this.deadline.isOver(this)) this.deadline.giveUp(this)
    else this.start(underWay, now)
  }

  start(underWay: UnderWay, now: number): void {
    this.#isQueued = false
    this.unsent = false
    const generation = underWay.begin(now)
    try {
      const answer = this.call(this)
      if (answer instanceof Promise) {
        answer.then(
          (value) => this.#answer(generation, value),
          (error: unknown) => this.#fail(generation, error),
        )
      } else this.#answer(generation, answer)
    } catch (error) {
      this.#fail(generation, error)
    }
  }

  giveUp(error: StoreError): void {
    const failure = this.unsent ? new StoreError('STORE_TIMEOUT', error.message, { sent: false }) : error
    this.#isOverdue = true
    if (this.patient) {
      this.line.failed(failure, this, true)
      return this.patient.overdue(failure)
    }
    this.gone = true
    if (this.#isQueued) this.line.dropped()
    this.#tell(failure)
  }

  /** A patient caller leaves. A call that is not written yet is not sent any more. */
  leave(): void {
    if (this.gone) return
    this.gone = true
    if (this.#isQueued) this.line.dropped()
    this.deadline.end(this)
  }

  #answer(generation: Generation, answer: T): void {
    this.line.ended(generation)
    if (this.gone) return this.patient?.tooLate(answer)
    if (!this.#isOverdue) {
      this.deadline.end(this)
      this.line.answeredInTime()
    }
    try {
      this.resolve(this.answered ? this.answered(answer) : answer)
    } catch (error) {
      this.reject(error)
    }
  }

  #fail(generation: Generation, error: unknown): void {
    this.line.ended(generation)
    if (this.gone) return
    this.deadline.end(this)
    this.unsent = false
    this.#tell(error)
  }

  #tell(error: unknown): void {
    this.line.failed(error, this, this.gone)
    try {
      if (this.failed) this.resolve(this.failed(error))
      else this.reject(error)
    } catch (instead) {
      this.reject(instead)
    }
  }
}

/** A caller who goes on listening after the deadline. */
export interface Patient<T> {
  /** Nothing came until the deadline. */
  overdue(error: StoreError): void
  answered(answer: T): void
  failed(error: unknown): void
  /** An answer came after the caller had left. */
  tooLate(answer: T): void
}

/** Calls that wait for a store's answer in a process, sent or not, unless the store says otherwise. */
const MOST_PENDING = 10_000
