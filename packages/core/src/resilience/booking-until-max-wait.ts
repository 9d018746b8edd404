import { backOff } from '../values/back-off.js'
import { clearTimer, nowMs, setTimer, type TimerHandle } from '../values/clock.js'
import { type Answer, type Caller, isDenied, type MaybePromise } from '../stores/store.js'
import { StoreError, type StoreFailure } from '../values/errors.js'
import type { Deadline } from './deadline.js'
import { failureOf, isOutage, notAsked } from './failure.js'
import type { LateReceiver, PendingCall, StoreChannel } from './store-channel.js'

/** A booking whose caller may wait longer than the deadline of a store. */
export interface BookingRequest {
  /** Microseconds. */
  readonly maxWait: number
  readonly caller: Caller
  book(maxWait: number, caller: Caller): MaybePromise<Answer>
  /** A call that changes nothing, to test whether the store answers. */
  read(): MaybePromise<unknown>
  /** Gives back a charge that came too late for the caller. Never rejects. */
  giveBack(answer: Answer): Promise<void>
}

/**
 * Books a turn for a call and waits for the answer up to `maxWait`, or to the deadline where that is longer.
 *
 * The booking is sent again, once the store has answered another call, if it was surely not carried out: it was not sent,
 * or Redis refused it. If its connection broke after it was written, it may have been carried out. It is then booked once
 * more for each connection that broke, and each of those may leave one turn unused. Any other failure is final. While
 * the circuit is open, nothing is sent.
 *
 * Rejects with the latest failure when the time is over, and once the caller has left. A booking that comes too late for the
 * caller is given back.
 */
export function bookUntilMaxWait(
  recovery: RecoveryQueue,
  deadline: Deadline,
  request: BookingRequest,
): Promise<Answer> {
  return new Promise((resolve, reject) =>
    new BookingUntilMaxWait(recovery, deadline, request, resolve, reject).begin(),
  )
}

class BookingUntilMaxWait implements LateReceiver<Answer> {
  /** An instant of `nowMs`. */
  notBefore = 0
  readonly #began = nowMs()
  /** The instant at which the wait for the answer ends. */
  readonly #endsAt: number
  #pending: PendingCall<Answer> | undefined
  #timesSent = 0
  /** The failure to report when the time is over. One that may have charged something replaces those that have not. */
  #failure: StoreError | undefined
  #timer: TimerHandle | undefined
  #isOver = false

  /**
   * Prepares a booking (units charged at a later instant for a call that waits), which `begin` sends. It waits in `recovery` to
   * be sent again after a failure. `resolve` and `reject` settle its caller's promise. The wait for the answer ends after the
   * request's `maxWait`, or after the deadline if that is longer.
   */
  constructor(
    readonly recovery: RecoveryQueue,
    readonly deadline: Deadline,
    readonly request: BookingRequest,
    readonly resolve: (answer: Answer) => void,
    readonly reject: (error: unknown) => void,
  ) {
    const maxWaitMs = request.maxWait / 1000
    this.#endsAt = this.#began + Math.max(maxWaitMs, deadline.ms)
    request.caller.left = () => this.#callerLeft()
  }

  /**
   * Sends the booking. If it may not be sent now (`refusal`), it waits for the store to recover, provided that a later attempt
   * may succeed and not too many bookings wait. Otherwise, or if the store is closed, it fails.
   */
  begin(): void {
    try {
      const { channel } = this.recovery
      const refusal = channel.refusal()
      if (!refusal) return this.#send(this.request.maxWait)
      const failure = notAsked(refusal)
      if (isWorthRepeating(failure) && channel.canAwaitRecovery) this.#awaitRecovery(failure)
      else this.fail(failure)
    } catch (closed) {
      this.fail(closed)
    }
  }

  /** Sends the booking again, now that the store answers, with what is left of its longest wait, in microseconds. */
  resume(): void {
    const took = (nowMs() - this.#began) * 1000
    this.#send(Math.max(0, Math.floor(this.request.maxWait - took)))
  }

  /**
   * Notes that the deadline has passed without an answer. The answer is awaited all the same, until the `maxWait` is over.
   */
  overdue(error: StoreError): void {
    this.#record(error)
    this.#expireInTime()
  }

  /**
   * Gets the store's answer and resolves with it. If the caller has left, the booking is given back and the promise rejects. The
   * answer may come after the deadline, so the turn (`answer.at`) may be later than `maxWait` from the call's beginning: then the
   * booking is given back, and the caller gets a denial. `took` is in milliseconds, `wait` and `maxWait` in microseconds.
   */
  answered(answer: Answer): void {
    const { maxWait, caller } = this.request
    const took = nowMs() - this.#began
    this.#endAttempt()
    if (caller.gone)
      return void this.request
        .giveBack(answer)
        .finally(() => this.reject(callerLeft()))
        .catch(() => {})
    const wait = answer.at - answer.now
    const isTooLate = took > this.deadline.ms && wait > 0 && wait + took * 1000 > maxWait
    if (!isTooLate || isDenied(answer)) return this.resolve(answer)
    this.request.giveBack(answer).catch(() => {})
    this.resolve({ ...answer, reason: 'limit', booking: undefined })
  }

  /**
   * Gets the failure of the booking. If a later attempt may succeed and the caller still waits, it is sent again after recovery.
   */
  failed(error: unknown): void {
    this.#pending = undefined
    if (this.request.caller.gone || !isOutage(error) || !isWorthRepeating(error)) return this.fail(error)
    this.#awaitRecovery(error as StoreError)
  }

  /** Gives back a booking whose answer came after it had been given up. */
  answeredTooLate(answer: Answer): void {
    this.request.giveBack(answer).catch(() => {})
  }

  /** Ends the booking and rejects its caller's promise with this error. */
  fail(error: unknown): void {
    this.#endAttempt()
    this.reject(error)
  }

  /**
   * Sends the booking to the store, for a turn at most `left` microseconds from now. `#pending` is the call under way, by which the
   * booking can be left out as long as it is not sent; this object gets its outcome.
   */
  #send(left: number): void {
    this.#timesSent++
    const { request } = this
    const book = (caller: Caller): MaybePromise<Answer> => request.book(left, caller)
    this.#pending = this.recovery.channel.sendFor(this, book, this.deadline)
  }

  /**
   * Has the booking wait in the queue for recovery, which sends it again once the store has answered another call, but not before
   * a pause that grows with each attempt. `error` is reported if the time is over first.
   */
  #awaitRecovery(error: StoreError): void {
    this.#record(error)
    this.notBefore = nowMs() + pauseMs(this.#timesSent)
    this.#expireInTime()
    if (!this.#isOver) this.recovery.add(this)
  }

  /**
   * Keeps the latest failure, which is reported when the time is over. But a failure after which the booking may have been carried
   * out (`sent`) is replaced only by another of that kind, as the caller has to know.
   */
  #record(error: StoreError): void {
    if (!this.#failure?.sent || error.sent) this.#failure = error
  }

  /**
   * Has the booking expire when its time is over: now, or by a timer, which is set once. If the caller has left, it need not
   * expire: the booking is in flight then, and its answer is awaited only to give it back.
   */
  #expireInTime(): void {
    if (this.request.caller.gone) return
    const left = this.#endsAt - nowMs()
    if (left > 0) this.#timer ??= setTimer(() => this.#expire(), Math.ceil(left))
    else this.#expire()
  }

  /** Ends the booking because its time is over, with the failure that was kept. If it is still queued, it is not sent. */
  #expire(): void {
    // A booking in flight may be carried out yet, whatever has become of earlier attempts.
    if (this.#pending?.unsent === false)
      this.#record(this.recovery.channel.explained(unanswered(this.request)) as StoreError)
    this.#pending?.leave()
    this.fail(this.#failure)
  }

  /**
   * Notes that the caller waits no longer. The answer to a booking in flight is still awaited, to give the booking back, without
   * a timer that keeps the process alive. A booking that is queued, or waits for recovery, ends and is not sent.
   */
  #callerLeft(): void {
    if (this.#pending && !this.#pending.unsent) return clearTimer(this.#timer)
    this.#pending?.leave()
    this.fail(callerLeft())
  }

  /** Ends the booking's wait: stops its timer, takes it out of the queue for recovery, and no longer hears its caller leave. */
  #endAttempt(): void {
    this.#isOver = true
    clearTimer(this.#timer)
    this.recovery.remove(this)
    this.request.caller.left = undefined
  }
}

function unanswered({ maxWait }: BookingRequest): StoreError {
  return new StoreError('STORE_TIMEOUT', `the store did not answer within ${maxWait / 1000} ms`)
}

function callerLeft(): StoreError {
  return new StoreError('CLOSED', 'the caller has left')
}

/** Wrong permissions, which waiting does not change, and more calls than may wait. */
const LASTING: readonly StoreFailure[] = ['forbidden', 'overloaded']

/**
 * Whether a booking may be sent again after this failure. It may not if the cause lasts, such as a wrong password. Otherwise it
 * may if it was surely not carried out (`sent` is false), and also if its connection broke ('unavailable'). The store may have
 * carried it out then, so one turn too many may be booked. It stays unused, which delays other calls but admits none too many.
 */
function isWorthRepeating(error: Error): boolean {
  const why = failureOf(error)
  if (LASTING.includes(why)) return false
  return (error as Partial<StoreError>).sent === false || why === 'unavailable'
}

/**
 * Milliseconds until a booking that was sent `timesSent` times is sent again: up to 50 after the first time, later up to 1000. 0
 * for a booking that was never sent.
 */
function pauseMs(timesSent: number): number {
  return timesSent === 0 ? 0 : backOff(25, timesSent, 1000)
}

/**
 * Bookings that wait until a store answers again. One timer serves all of them. While no other call is sent to the store, one
 * of them probes it, as often as the circuit allows.
 */
export class RecoveryQueue {
  /** With each booking the number of calls answered in time when it began to wait. */
  readonly #waiting = new Map<BookingUntilMaxWait, number>()
  #timer: ReturnType<typeof setInterval> | undefined
  #answeredBefore = 0

  /** A queue of bookings for the store behind `channel`, empty at first. */
  constructor(readonly channel: StoreChannel) {}

  /**
   * Adds a booking. Its `resume` is called once the store has answered another call in time from now on, and not before the
   * booking's `notBefore`. The timer that checks for it runs while there are bookings.
   */
  add(booking: BookingUntilMaxWait): void {
    this.#waiting.set(booking, this.channel.answeredInTime)
    this.channel.awaitingRecovery = this.#waiting.size
    this.#timer ??= setInterval(() => this.#check(), CHECK_MS)
  }

  /** Removes a booking from this queue, if it waits here for the store to recover. The timer that checks for that stops with the last. */
  remove(booking: BookingUntilMaxWait): void {
    if (!this.#waiting.delete(booking)) return
    this.channel.awaitingRecovery = this.#waiting.size
    if (this.#waiting.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  /**
   * Runs every 25 ms while bookings wait. Resumes each booking if the store has answered a call in time since that booking began to
   * wait, and if its pause is over. If the store has answered no call in time since the last check, sends a probe by the oldest
   * booking, as no other call may come. If the store was closed, all bookings fail.
   */
  #check(): void {
    const { answeredInTime } = this.channel
    const now = nowMs()
    let isAnswering: boolean
    try {
      isAnswering = this.channel.isAnswering()
    } catch (closed) {
      for (const booking of this.#waiting.keys()) {
        this.remove(booking)
        booking.fail(closed)
      }
      return
    }
    if (answeredInTime === this.#answeredBefore) {
      const [oldest] = this.#waiting.keys()
      if (oldest) this.channel.probe(() => oldest.request.read(), oldest.deadline)
    }
    this.#answeredBefore = answeredInTime
    if (!isAnswering) return
    for (const [booking, answeredAtStart] of this.#waiting) {
      if (answeredInTime === answeredAtStart || now < booking.notBefore) continue
      this.remove(booking)
      booking.resume()
    }
  }
}

/** Milliseconds between two checks. */
const CHECK_MS = 25
