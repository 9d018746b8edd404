import type { Decision, Limiter, Permit, Semaphore } from '@sluice/core'
import { type ExceededReason, RateLimitExceededError } from './exceeded.js'
import { Queue, type Waiter } from './queue.js'

/** A call may go out now. */
export interface Turn {
  readonly decision: Decision
  /** Gives the place among the calls under way back. */
  readonly release: () => void
}

export interface Terms {
  readonly cost: number
  readonly priority: number
  readonly until: number
  readonly maxQueue: number
  readonly ahead: number
  readonly latenessMs: number | undefined
  readonly signal: AbortSignal | undefined
}

interface Guest extends Waiter {
  /** The place that is booked for it. */
  booking: Booking | undefined
  readonly ahead: number
  readonly latenessMs: number | undefined
  enter(turn: Turn): void
  refuse(error: unknown): void
}

interface Booking {
  readonly cost: number
  readonly controller: AbortController
  /** For whom; undefined where nobody wants it any more. */
  guest: Guest | undefined
}

/**
 * The calls of this process that wait for one key of a limiter. One place is booked at a time (or `ahead`), for whoever
 * is first, and given to whoever is first when its turn comes: so a call of high priority passes those that wait here,
 * and waits for at most one of them. A place of the semaphore is taken before that of the limiter: a turn is an
 * instant, and waiting would spoil it.
 */
export class Line {
  readonly #limiter: Limiter
  readonly #semaphore: Semaphore | undefined
  readonly #key: string
  readonly #queue = new Queue<Guest>()
  readonly #bookings = new Set<Booking>()
  #pausing: Promise<void> | undefined
  #pausedUntil = 0
  #pausedSilently = 0
  #paused = false

  constructor(limiter: Limiter, semaphore: Semaphore | undefined, key: string) {
    this.#limiter = limiter
    this.#semaphore = semaphore
    this.#key = key
  }

  /** Nobody waits, and no pause is on: it can be forgotten. */
  get idle(): boolean {
    return this.#queue.size === 0 && this.#bookings.size === 0 && this.#pausedUntil <= performance.now()
  }

  /** Milliseconds that are left of a pause. */
  get pausedMs(): number {
    return Math.max(0, this.#pausedUntil - performance.now())
  }

  /**
   * Resolves when it is the call's turn.
   * @throws {RateLimitExceededError} when there is none in time; the signal's reason when it aborts.
   */
  turn({ cost, priority, until, ahead, latenessMs, maxQueue, signal }: Terms): Promise<Turn> {
    if (this.#queue.size >= maxQueue) return Promise.reject(this.#exceeded('queue'))
    return new Promise((resolve, reject) => {
      const leave = (settle: () => void): void => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', abort)
        this.#queue.delete(guest)
        this.#passOn(guest)
        settle()
      }
      const guest: Guest = {
        cost,
        priority,
        until,
        ahead,
        latenessMs,
        booking: undefined,
        enter: (turn) => leave(() => resolve(turn)),
        refuse: (error) => leave(() => reject(error)),
      }
      const abort = (): void => guest.refuse(signal!.reason)
      const expire = (): void => {
        // The store knows better than a timer when the turn of a booked place comes.
        if (!guest.booking) guest.refuse(this.#exceeded('queue'))
      }
      const timer = setTimeout(expire, Math.max(0, until - performance.now()))
      signal?.addEventListener('abort', abort)
      this.#queue.add(guest)
      void this.#book()
    })
  }

  /** Holds the key for the whole fleet. Returns whether this pause is longer than what was known. */
  pause(ms: number): boolean {
    const until = performance.now() + ms
    if (until <= this.#pausedUntil + NEGLIGIBLE_MS) return false
    this.#pausedUntil = until
    this.#paused = true
    this.#pausing = this.#limiter.hold(this.#key, Math.ceil(ms)).catch(() => {})
    // Places that are booked may be too close to be confirmed by the store.
    for (const { controller } of this.#bookings) controller.abort(PAUSED)
    return true
  }

  /** Milliseconds to pause after a refusal that names no time: longer for each in a row. */
  silentPauseMs(): number {
    if (this.pausedMs > 0) return 0
    const longest = Math.min(LONGEST_SILENT_PAUSE_MS, 1000 * 2 ** this.#pausedSilently++)
    return longest * (0.75 + Math.random() / 4)
  }

  /** The other side answered a call. */
  succeeded(): void {
    this.#pausedSilently = 0
  }

  /** Whether the first call since a pause goes out; asked once for each that does. */
  resumed(): boolean {
    const resumed = this.#paused && this.pausedMs === 0
    if (resumed) this.#paused = false
    return resumed
  }

  /** Books places for those who are first, as many as may be booked at once. */
  async #book(): Promise<void> {
    await this.#pausing
    for (;;) {
      const guest = this.#queue.first(({ booking }) => !booking)
      if (!guest || this.#bookings.size >= guest.ahead) return
      void this.#serve(guest)
    }
  }

  async #serve(guest: Guest): Promise<void> {
    const booking: Booking = { cost: guest.cost, controller: new AbortController(), guest }
    guest.booking = booking
    this.#bookings.add(booking)
    let permit: Permit | undefined
    let failure: unknown
    try {
      permit = await this.#semaphore?.acquire({ key: this.#key, ...patience(booking) })
      if (permit?.allowed === false) throw this.#exceeded('concurrency')
      const decision = await this.#limiter.acquire(this.#key, { cost: booking.cost, ...patience(booking) })
      if (!decision.allowed) throw this.#exceeded(decision.reason ?? 'degraded', decision)
      this.#give(booking, decision, permit)
    } catch (error) {
      void permit?.release()
      failure = error
    }
    this.#bookings.delete(booking)
    const left = booking.guest
    if (left) left.booking = undefined
    if (failure !== undefined && !booking.controller.signal.aborted) left?.refuse(failure)
    void this.#book()
  }

  /** To whoever is first by now. Where everybody of this cost has left in the last moment, the place goes back. */
  #give(booking: Booking, decision: Decision, permit: Permit | undefined): void {
    const release = (): void => void permit?.release()
    const next = this.#queue.first(({ cost }) => cost === booking.cost)
    if (!next) {
      release()
      decision.settle(0).catch(() => {})
      return
    }
    swap(next, booking)
    booking.guest = next.booking = undefined
    next.enter({ decision, release })
    if (decision.lateMs > (next.latenessMs ?? latenessMs(decision))) this.#payAgain(booking.cost)
  }

  /**
   * A call that goes out late comes closer to those behind it. One more place, which nobody uses, is booked for it at the
   * end of the line: then any span of the window has either the place that it was late for or this one to spare.
   */
  #payAgain(cost: number): void {
    this.#limiter.acquire(this.#key, { cost, maxWait: LONGEST_WAIT }).catch(() => {})
  }

  /** What was booked for one who leaves is for the first of the same cost that has nothing yet, or not wanted. */
  #passOn(guest: Guest): void {
    const { booking } = guest
    if (!booking) return
    const heir = this.#queue.first(({ cost, booking: own }) => !own && cost === booking.cost)
    guest.booking = undefined
    booking.guest = heir
    if (heir) heir.booking = booking
    else booking.controller.abort(UNWANTED)
  }

  #exceeded(reason: ExceededReason, decision?: Decision): RateLimitExceededError {
    return new RateLimitExceededError(this.#key, reason, decision)
  }
}

/** Gives `guest` this booking; for whom it was gets what `guest` had. */
function swap(guest: Guest, booking: Booking): void {
  const [own, before] = [guest.booking, booking.guest]
  if (own) own.guest = before
  if (before) before.booking = own
  guest.booking = booking
  booking.guest = guest
}

function patience({ guest, controller: { signal } }: Booking): { maxWait: number; signal: AbortSignal } {
  return { maxWait: Math.max(0, Math.floor((guest?.until ?? 0) - performance.now())), signal }
}

/** What is less is the timers' own doing, and within the reserve that a limit needs anyway. */
function latenessMs({ policies }: Decision): number {
  return Math.max(LEAST_LATENESS_MS, Math.min(...policies.map(({ windowMs }) => windowMs)) / 100)
}

/** Many replies tell of the same pause, each from its own moment. */
const NEGLIGIBLE_MS = 50
const LEAST_LATENESS_MS = 10
const LONGEST_WAIT = '1d'
const LONGEST_SILENT_PAUSE_MS = 60_000
const PAUSED = new Error('the other side asked for a pause')
const UNWANTED = new Error('nobody waits for this place any more')
