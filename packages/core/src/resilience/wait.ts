import { StoreError, type StoreFailure } from '../values/errors.js'
import { type Answer, type Caller, isDenied, type MaybePromise } from '../stores/store.js'
import type { Deadline } from './deadline.js'
import type { Line, Patient, Sent } from './line.js'
import { failureOf, isOutage, notAsked } from './outage.js'
import type { Recovering } from './recovery.js'

/** The booking of a caller who may wait longer than the deadline of a store. */
export interface PatientBooking {
  /** Microseconds. */
  readonly maxWait: number
  /** The one who waits. */
  readonly caller: Caller
  book(maxWait: number, caller: Caller): MaybePromise<Answer>
  /** A call that changes nothing, to see whether the store answers. */
  read(): MaybePromise<unknown>
  /** Nobody wants what was charged. */
  giveBack(answer: Answer): void
}

/**
 * Books a place and listens for the answer up to `maxWait`, or to the deadline where that is longer.
 *
 * The booking is sent again, once the store has answered another call, where it was surely not carried out: it was not
 * sent, or Redis refused it. Where its connection broke after it was written, it may have been carried out: it is booked
 * once more for each connection that broke, and each may leave one place empty. Any other failure is final. While the
 * circuit is open nothing is sent.
 *
 * Rejects with the latest failure when the time is over. What is booked too late for the caller is given back.
 */
export function bookPatiently(line: Line, deadline: Deadline, booking: PatientBooking): Promise<Answer> {
  return new Promise((resolve, reject) => new Wait(line, deadline, booking, resolve, reject).ask())
}

class Wait implements Patient<Answer>, Recovering {
  notBefore = 0
  readonly #began = performance.now()
  readonly #until: number
  #sent: Sent<Answer> | undefined
  #timesSent = 0
  /** What is told when the time is over; one that may have charged something outlasts those that have not. */
  #failure: StoreError | undefined
  #timer: ReturnType<typeof setTimeout> | undefined
  #isOver = false

  constructor(
    readonly line: Line,
    readonly deadline: Deadline,
    readonly booking: PatientBooking,
    readonly resolve: (answer: Answer) => void,
    readonly reject: (error: unknown) => void,
  ) {
    this.#until = this.#began + Math.max(booking.maxWait / 1000, deadline.ms)
    booking.caller.left = () => this.#left()
  }

  ask(): void {
    try {
      const refusal = this.line.refusal()
      if (!refusal) return this.goOn()
      const failure = notAsked(refusal)
      if (isWorthWaiting(failure) && this.line.takesWaiting) this.#awaitRecovery(failure)
      else this.fail(failure)
    } catch (closed) {
      this.fail(closed)
    }
  }

  readonly read = (): MaybePromise<unknown> => this.booking.read()

  goOn(): void {
    const { booking } = this
    const left =
      this.#timesSent++ === 0 ? booking.maxWait : Math.max(0, (this.#until - performance.now()) * 1000)
    this.#sent = this.line.listen((caller) => booking.book(left, caller), this.deadline, this)
  }

  overdue(error: StoreError): void {
    this.#note(error)
    this.#endInTime()
  }

  answered(answer: Answer): void {
    const { maxWait } = this.booking
    const took = performance.now() - this.#began
    this.#end()
    const wait = answer.at - answer.now
    const isTooLate = took > this.deadline.ms && wait > 0 && wait + took * 1000 > maxWait
    if (!isTooLate || isDenied(answer)) return this.resolve(answer)
    this.booking.giveBack(answer)
    this.resolve({ ...answer, reason: 'limit', booking: undefined })
  }

  failed(error: unknown): void {
    this.#sent = undefined
    if (this.booking.caller.gone || !isOutage(error) || !isWorthWaiting(error)) return this.fail(error)
    this.#awaitRecovery(error as StoreError)
  }

  tooLate(answer: Answer): void {
    this.booking.giveBack(answer)
  }

  fail(error: unknown): void {
    this.#end()
    this.reject(error)
  }

  #awaitRecovery(error: StoreError): void {
    this.#note(error)
    this.notBefore = performance.now() + pauseMs(this.#timesSent)
    this.#endInTime()
    if (!this.#isOver) this.line.recovery.await(this)
  }

  #note(error: StoreError): void {
    if (!this.#failure?.sent || error.sent) this.#failure = error
  }

  /** Nobody waits for what brings back a place of one who has left. */
  #endInTime(): void {
    if (this.booking.caller.gone) return
    const left = this.#until - performance.now()
    if (left > 0) this.#timer ??= setTimeout(() => this.#expire(), Math.ceil(left))
    else this.#expire()
  }

  #expire(): void {
    this.#sent?.leave()
    this.fail(this.#failure)
  }

  /** What is on its way is still listened for, as it may bring a place to give back; it keeps no process alive. */
  #left(): void {
    if (this.#sent && !this.#sent.unsent) return clearTimeout(this.#timer)
    this.#sent?.leave()
    this.fail(new StoreError('CLOSED', 'the caller has left'))
  }

  #end(): void {
    this.#isOver = true
    clearTimeout(this.#timer)
    this.line.recovery.leave(this)
    this.booking.caller.left = undefined
  }
}

/** A set-up that no waiting mends, and more calls than may wait. */
const LASTING: readonly StoreFailure[] = ['forbidden', 'overloaded']

/** Whether a booking may be sent again: it was not carried out, or its connection broke. */
function isWorthWaiting(error: Error): boolean {
  const why = failureOf(error)
  if (LASTING.includes(why)) return false
  return (error as Partial<StoreError>).sent === false || why === 'unavailable'
}

/** Milliseconds until a booking is sent again, longer each time, at random so that a fleet does not come in one moment. */
function pauseMs(timesSent: number): number {
  return timesSent === 0 ? 0 : Math.min(25 * 2 ** timesSent, 1000) * (0.5 + Math.random() / 2)
}
