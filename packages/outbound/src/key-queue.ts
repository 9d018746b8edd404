import type { Decision, Limiter, Permit, Policy, Semaphore } from '@sluice/core'
import { type ExceededReason, RateLimitExceededError } from './exceeded.js'
import { KeyPause } from './key-pause.js'
import { Lanes, type Waiter } from './lanes.js'

/** A call may go out now. */
export interface Turn {
  readonly decision: Decision
  /** Gives the place among the calls under way back, the first time. */
  readonly release: () => void
}

/** A call that waits for its turn. */
export interface WaitingCall extends Waiter<WaitingCall> {
  readonly cost: number
  /** Until when it waits, on the clock of `performance.now()`. */
  readonly until: number
  /** How many places may be booked ahead. */
  readonly prefetch: number
  readonly latenessMs: number | undefined
  /** Undefined: the limiter's own. */
  readonly policies: readonly Policy[] | undefined
  /** The place that is booked for it. */
  booking: Booking | undefined
  enter(turn: Turn): void
  refuse(error: unknown): void
}

export interface Booking {
  readonly cost: number
  readonly policies: readonly Policy[] | undefined
  readonly controller: AbortController
  /** The call that it is for; undefined where no call wants it any more. */
  call: WaitingCall | undefined
}

/**
 * The calls of this process that wait for one key of a limiter. One place is booked at a time (or `prefetch`), for the call
 * that is first, and given to the call that is first when its turn comes: so a call of high priority passes those that
 * wait here, and waits for at most one of them. A place of the semaphore is taken before that of the limiter: a turn is
 * an instant, and waiting would spoil it.
 */
export class KeyQueue {
  readonly key: string
  readonly pauses = new KeyPause()
  /** Calls that wait for this key, wherever they stand: here, until they are repeated, or in a queue that is paused. */
  waiting = 0
  readonly #limiter: Limiter
  readonly #semaphore: Semaphore | undefined
  readonly #lanes = new Lanes<WaitingCall>()
  readonly #bookings = new Set<Booking>()
  #holding: Promise<void> | undefined

  constructor(limiter: Limiter, semaphore: Semaphore | undefined, key: string) {
    this.#limiter = limiter
    this.#semaphore = semaphore
    this.key = key
  }

  /** No call waits, and no pause is on: it can be forgotten. */
  get idle(): boolean {
    return this.waiting === 0 && this.#bookings.size === 0 && this.pauses.leftMs === 0
  }

  /** From here on the call gets its turn, or is refused. */
  add(call: WaitingCall): void {
    this.#lanes.add(call)
    void this.#book()
  }

  /** What was booked for the call is for the first of the same cost that has nothing yet, or given back. */
  remove(call: WaitingCall): void {
    this.#lanes.delete(call)
    const { booking } = call
    if (!booking) return
    const heir = this.#lanes.first((other) => !other.booking && fits(booking, other))
    call.booking = undefined
    booking.call = heir
    if (heir) heir.booking = booking
    else booking.controller.abort(UNWANTED)
  }

  /** Holds the key for the whole fleet. Returns whether this pause is longer than what was known. */
  pause(ms: number, policies: readonly Policy[] | undefined): boolean {
    if (!this.pauses.begin(ms)) return false
    this.#holding = this.#limiter.hold(this.key, Math.ceil(ms), shaped(policies)).catch(() => {})
    // Places that are booked may be too close to be confirmed by the store.
    this.rebook()
    return true
  }

  /** Gives the places that are booked back and books others. */
  rebook(): void {
    for (const { controller } of this.#bookings) controller.abort(REBOOKED)
  }

  /** Books places for the calls that are first, as many as may be booked at once. */
  async #book(): Promise<void> {
    await this.#holding
    for (;;) {
      const call = this.#lanes.first(({ booking }) => !booking)
      if (!call || this.#bookings.size >= call.prefetch) return
      void this.#serve(call)
    }
  }

  async #serve(call: WaitingCall): Promise<void> {
    const { cost, policies } = call
    const booking: Booking = { cost, policies, controller: spare.pop() ?? new AbortController(), call }
    call.booking = booking
    this.#bookings.add(booking)
    let permit: Permit | undefined
    let failure: unknown
    try {
      permit = await this.#semaphore?.acquire(this.key, { ...patience(booking) })
      if (permit?.allowed === false) throw this.exceeded('concurrency')
      const decision = await this.#limiter.acquire(this.key, {
        cost,
        ...shaped(policies),
        ...patience(booking),
      })
      if (!decision.allowed) throw this.exceeded(decision.reason ?? 'degraded', decision)
      this.#give(booking, decision, permit)
    } catch (error) {
      void permit?.release()
      failure = error
    }
    this.#bookings.delete(booking)
    const { aborted } = booking.controller.signal
    if (!aborted && spare.length < MOST_SPARE) spare.push(booking.controller)
    const left = booking.call
    if (left) left.booking = undefined
    if (failure !== undefined && !aborted) left?.refuse(failure)
    void this.#book()
  }

  /** To the call that is first by now. Where every call of this cost has left in the last moment, the place goes back. */
  #give(booking: Booking, decision: Decision, permit: Permit | undefined): void {
    const release = (): void => void permit?.release()
    const next = this.#lanes.first((call) => fits(booking, call))
    if (!next) {
      release()
      decision.settle(0).catch(() => {})
      return
    }
    swap(next, booking)
    booking.call = next.booking = undefined
    next.enter({ decision, release })
    if (decision.lateMs > (next.latenessMs ?? latenessMs(decision))) this.#payAgain(booking)
  }

  /**
   * A call that goes out late comes closer to those behind it. One more place, which no call uses, is booked for it at
   * the end of the line: then any span of the window has either the place that it was late for or this one to spare.
   */
  #payAgain({ cost, policies }: Booking): void {
    this.#limiter.acquire(this.key, { cost, ...shaped(policies), maxWait: LONGEST_WAIT }).catch(() => {})
  }

  exceeded(reason: ExceededReason, decision?: Decision): RateLimitExceededError {
    return new RateLimitExceededError(this.key, reason, decision)
  }
}

function fits({ cost, policies }: Booking, call: WaitingCall): boolean {
  return call.cost === cost && call.policies === policies
}

/** Gives `call` this booking; the call that it was for gets what `call` had. */
function swap(call: WaitingCall, booking: Booking): void {
  const [own, before] = [call.booking, booking.call]
  if (own) own.call = before
  if (before) before.booking = own
  call.booking = booking
  booking.call = call
}

function patience({ call, controller: { signal } }: Booking): { maxWait: number; signal: AbortSignal } {
  return { maxWait: Math.max(0, Math.floor((call?.until ?? 0) - performance.now())), signal }
}

function shaped(policies: readonly Policy[] | undefined): { readonly policies?: readonly Policy[] } {
  return policies ? { policies } : {}
}

/** What is less is the timers' own doing, and within the reserve that a limit needs anyway. */
function latenessMs({ policies }: Decision): number {
  return Math.max(LEAST_LATENESS_MS, Math.min(...policies.map(({ windowMs }) => windowMs)) / 100)
}

/** Controllers of bookings that were not aborted, to be used again: making one takes longer than all else of a turn. */
const spare: AbortController[] = []
const MOST_SPARE = 100
const LEAST_LATENESS_MS = 10
const LONGEST_WAIT = '1d'
const REBOOKED = new Error('places are booked anew')
const UNWANTED = new Error('no call waits for this place any more')
