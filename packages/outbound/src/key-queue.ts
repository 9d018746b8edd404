import type { Decision, Limiter, Permit, Policy, Semaphore } from '@sluice/core'
import {
  clearTimer,
  nowMs,
  onAbort,
  ownText,
  setTimer,
  storedKey,
  type TimerHandle,
} from '@sluice/core/internal'
import type { QueuedCall, Reservation } from './call.js'
import { type Heeded, KeyPause } from './key-pause.js'
import { PriorityQueue } from './priority-queue.js'
import type { Verdict } from './task.js'
import type { WaitingSettings } from './waiting-options.js'

/**
 * The calls of this process that wait for one key of a limiter. At most `prefetch` turns are reserved at a time; each is
 * given to the call that is first when it comes, so a new call of high priority waits for at most that many. The permit of
 * the semaphore is taken before the turn of the limiter: a turn is an instant, which a wait for the permit would miss.
 */
export class KeyQueue {
  /** Undefined until the other side has asked for a pause or refused a call. */
  pause: KeyPause | undefined
  /** Calls that wait for this key: in this queue, before another attempt, or in a client that is paused. */
  waiting = 0
  readonly #calls = new PriorityQueue()
  readonly #reservations = new Set<Reservation>()
  #holding: Promise<void> | undefined
  /** Calls that are added meanwhile are served together. */
  #isReserving = false
  /** Reserves further turns when more calls may go out after a pause. */
  #growth: TimerHandle | undefined

  constructor(readonly shared: KeyQueues) {}

  /** Milliseconds until the pause ends, 0 without one. */
  get pausedMs(): number {
    return this.pause?.leftMs ?? 0
  }

  /** Whether calls wait. Otherwise only a pause is lost with the queue. */
  get isUsed(): boolean {
    return this.waiting > 0 || this.#reservations.size > 0
  }

  /** Adds a call to the queue, and reserves turns if more may be reserved. The call is granted its turn or refused later. */
  add(call: QueuedCall): void {
    this.#calls.add(call)
    void this.#reserve()
  }

  /**
   * Removes a call from the queue. The turn that is reserved for it passes to the first call of the same cost and
   * policies that has none (`heir`); without such a call the reservation is cancelled.
   */
  remove(call: QueuedCall): void {
    this.#calls.delete(call)
    if (!this.#calls.first(() => true)) clearTimer(this.#growth)
    const { reservation } = call
    if (!reservation) return
    const { cost, policies } = reservation
    const heir = this.#calls.first(
      (other) => !other.reservation && other.terms.cost === cost && other.policies === policies,
    )
    call.reservation = undefined
    reservation.call = heir
    if (heir) heir.reservation = reservation
    else reservation.controller.abort(UNNEEDED)
  }

  /**
   * Pauses the key for `ms` milliseconds, in every process that shares the limiter, and reserves its turns anew. Returns
   * false, and changes nothing, if a known pause ends as late.
   */
  hold(key: string, ms: number, policies: readonly Policy[] | undefined): boolean {
    this.pause ??= new KeyPause()
    if (!this.pause.begin(ms)) return false
    const options = { ...(policies && { policies }) }
    this.#holding = this.shared.holder?.hold(key, Math.ceil(ms), options).catch(() => {})
    // Reserved turns may be too close to be confirmed by the store.
    this.reserveAnew()
    return true
  }

  /**
   * Passes the verdict on an attempt that went out at `sentAt` to the pause of the key, and reserves the turns that it
   * allows then. Returns for how long the key or the call has to wait.
   */
  heed(verdict: Verdict, sentAt: number): Heeded {
    this.pause ??= new KeyPause()
    const heeded = this.pause.heed(verdict, sentAt)
    void this.#reserve()
    return heeded
  }

  /** Cancels all reservations and makes new ones. */
  reserveAnew(): void {
    for (const { controller } of this.#reservations) controller.abort(ANEW)
  }

  /**
   * Reserves turns for the first calls that have none: up to `prefetch` at a time, and after a pause no more than its
   * allowance. It waits until the store knows of a pause that was just begun; calls that are added meanwhile are served
   * by the same run.
   */
  async #reserve(): Promise<void> {
    if (this.#isReserving) return
    this.#isReserving = true
    await this.#holding
    this.#isReserving = false
    if (this.#growth !== undefined) clearTimer(this.#growth)
    for (;;) {
      const call = this.#calls.first(({ reservation }) => !reservation)
      if (!call || this.#reservations.size >= call.settings.prefetch) return
      const { pause } = this
      if (pause && this.#reservations.size >= pause.allowance) return this.#awaitGrowth(pause)
      void this.#serve(call)
    }
  }

  /** Reserves further turns when the allowance after a pause has grown by time. */
  #awaitGrowth({ growsInMs }: KeyPause): void {
    if (growsInMs < Infinity) this.#growth = setTimer(() => void this.#reserve(), growsInMs)
  }

  /**
   * Gets a permit of the semaphore and then a turn of the limiter for a call, waits for both, and passes them to the call
   * that is first in the queue then. If there is none in time, the call that the reservation belongs to by now is
   * refused, or gets another reservation if it can wait for longer. Calls without a deadline ask again, as a limiter
   * books at most a day ahead.
   */
  async #serve(call: QueuedCall): Promise<void> {
    const { key, until } = call
    const { cost } = call.terms
    const controller = spare.pop() ?? new AbortController()
    const reservation: Reservation = { cost, policies: call.policies, controller, call, until }
    call.reservation = reservation
    this.#reservations.add(reservation)
    let permit: Permit | undefined
    let failure: unknown
    try {
      permit = await this.shared.semaphore?.acquire(key, patience(reservation))
      if (permit?.allowed === false) {
        // A call without a deadline is not refused below: its deadline is later than that of this reservation.
        if (reservation.until === Infinity) reservation.until = 0
        throw call.exceeded('concurrency')
      }
      if (!this.shared.holder && this.pause) await outlast(this.pause, call, reservation)
      const { policies } = reservation
      const options = { cost, ...(policies && { policies }), ...patience(reservation) }
      const decision = await this.shared.limiter?.acquire(key, options)
      if (decision?.allowed === false) {
        if (reservation.until === Infinity && comesLater(decision)) {
          void permit?.release('failed')
          await sleep(Math.min(decision.retryAfterMs, LONGEST_WAIT_MS), controller.signal)
          reservation.until = 0
        }
        throw call.exceeded(decision.reason, decision)
      }
      this.#grant(reservation, decision, permit)
    } catch (error) {
      void permit?.release('failed')
      failure = error
    }
    this.#reservations.delete(reservation)
    const { aborted } = controller.signal
    if (!aborted && spare.length < MOST_SPARE) spare.push(controller)
    const unserved = reservation.call
    if (unserved) unserved.reservation = undefined
    // A call whose deadline is later than that of this reservation stays in the queue and gets another one.
    if (failure !== undefined && !aborted && unserved && unserved.until <= reservation.until)
      unserved.refuse(failure)
    else unserved?.recheck()
    void this.#reserve()
  }

  /**
   * Gives the turn to the call that is first by now, of those with its cost and policies. The call that it was reserved
   * for takes over the reservation of that one. If all have left meanwhile, permit and turn are given back. A turn that
   * is used too late is paid for once more.
   */
  #grant(reservation: Reservation, decision: Decision | undefined, permit: Permit | undefined): void {
    const { cost, policies } = reservation
    const first = this.#calls.first((other) => other.terms.cost === cost && other.policies === policies)
    if (!first) {
      void permit?.release('failed')
      decision?.settle(0).catch(() => {})
      return
    }
    const { call } = reservation
    // The call that the turn was for gets the reservation of this one.
    if (first.reservation) first.reservation.call = call
    if (call) call.reservation = first.reservation
    first.reservation = reservation.call = undefined
    this.#calls.delete(first)
    this.pause?.sent()
    const { key } = first
    first.grant(decision, permit)
    if (call !== first) call?.recheck()
    if (decision && decision.lateMs > (first.settings.lateness ?? LEAST_LATENESS_MS))
      this.#payAgain(key, reservation, first.settings, decision)
  }

  /**
   * A call that goes out late comes closer to the calls behind it. Therefore one more turn, which no call uses, is booked at
   * the end of the queue: any span of the window then lacks either the turn that the call missed or this one. The reserve
   * below the provider's limit absorbs 1 % of a window.
   */
  #payAgain(key: string, reservation: Reservation, { lateness }: WaitingSettings, decision: Decision): void {
    const { limiter } = this.shared
    const windowMs = limiter?.windowMs ?? Math.min(...decision.policies.map((policy) => policy.windowMs))
    if (lateness === undefined && decision.lateMs <= windowMs / 100) return
    const { cost, policies } = reservation
    const options = { cost, ...(policies && { policies }), maxWait: LONGEST_WAIT_MS }
    limiter?.acquire(key, options).catch(() => {})
  }
}

/** A limiter, or unknown rates in its place. Only those have a window of their own. */
export type TurnSource = Pick<Limiter, 'acquire' | 'hold'> & { readonly windowMs?: number }

/** A limiter and a semaphore, with the queues of their keys. Clients that share both share the queues. */
export class KeyQueues {
  /** Gives calls their turn. */
  limiter: TurnSource | undefined
  /** By stored key. */
  readonly #queues = new Map<string, KeyQueue>()
  #sweepAt = LEAST_SWEPT

  /** Keys are held in `holder` for the whole fleet. A limiter that a queue makes later holds none. */
  constructor(
    readonly holder: TurnSource | undefined,
    readonly semaphore: Semaphore | undefined,
  ) {
    this.limiter = holder
  }

  /**
   * The queue of a key. One that no call needs may be dropped, and made anew by another call.
   * @throws {InputError} INVALID_KEY.
   */
  get(key: string): KeyQueue {
    const stored = storedKey(key)
    let queue = this.#queues.get(stored)
    if (!queue) {
      if (this.#queues.size >= this.#sweepAt) this.#sweep()
      this.#queues.set(ownText(stored), (queue = new KeyQueue(this)))
    }
    return queue
  }

  /** Drops the queues that no call needs. The pauses among them are kept, but for the oldest beyond `MOST_PAUSED`. */
  #sweep(): void {
    const unused = [...this.#queues].filter(([, { isUsed }]) => !isUsed)
    const paused = unused.filter(([, { pausedMs }]) => pausedMs > 0)
    const kept = new Set(paused.slice(-MOST_PAUSED))
    for (const each of unused) if (!kept.has(each)) this.#queues.delete(each[0])
    this.#sweepAt = Math.max(LEAST_SWEPT, 2 * this.#queues.size)
  }
}

/**
 * The queues that all clients of this process with this limiter and this semaphore share, made for the first of them.
 * Those without a semaphore are kept under the limiter itself.
 */
export function keyQueuesOf(limiter: TurnSource, semaphore: Semaphore | undefined): KeyQueues {
  const beside = queuesByLimiter.get(limiter) ?? new WeakMap<object, KeyQueues>()
  queuesByLimiter.set(limiter, beside)
  const known = beside.get(semaphore ?? limiter) ?? new KeyQueues(limiter, semaphore)
  beside.set(semaphore ?? limiter, known)
  return known
}

/**
 * Waits until the pause of a key has ended, where there is no limiter that would hold the key. Rejects if the pause is
 * longer than the call may wait, or if the reservation is cancelled.
 */
async function outlast(pause: KeyPause, call: QueuedCall, reservation: Reservation): Promise<void> {
  // Timers may fire early, so the clock decides.
  for (let { leftMs } = pause; leftMs > 0; { leftMs } = pause) {
    const { maxWait, signal } = patience(reservation)
    if (leftMs > maxWait) throw call.exceeded('held')
    await sleep(Math.ceil(leftMs), signal)
  }
}

/**
 * The options with which a permit or a turn is asked for: how many milliseconds the call that has the reservation by now
 * can wait, at most a day, and the signal that cancels the request. Notes the deadline of that call as the reservation's.
 */
function patience(reservation: Reservation): { readonly maxWait: number; readonly signal: AbortSignal } {
  const { call, controller } = reservation
  reservation.until = call?.until ?? 0
  const leftMs = Math.min(LONGEST_WAIT_MS, reservation.until - nowMs())
  return { maxWait: Math.max(0, Math.floor(leftMs)), signal: controller.signal }
}

/** Whether a denial is only for now: a turn will come, but later than the longest time for which a limiter books ahead. */
function comesLater({ reason, retryAfterMs }: Decision): boolean {
  return reason === 'limit' && Number.isFinite(retryAfterMs)
}

/** Resolves after `ms`, or rejects when the signal aborts. */
function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimer(() => end(resolve), ms)
    const stopListening = onAbort(signal, () => end(() => reject(signal.reason)))
    /** Ends the wait: stops the timer and the listener, then settles the promise. */
    function end(settle: () => void): void {
      clearTimer(timer)
      stopListening()
      settle()
    }
  })
}

/** Controllers of reservations that were not aborted, for reuse: making one costs more than the rest of a turn. */
const spare: AbortController[] = []
const MOST_SPARE = 100
/** Timers alone cause less lateness than this. */
const LEAST_LATENESS_MS = 10
const LONGEST_WAIT_MS = 24 * 60 * 60 * 1000
/** Queues are dropped only above this number, or above twice as many as were kept at the last sweep. */
const LEAST_SWEPT = 100
/** The limiter holds a key whose pause is forgotten here all the same. */
const MOST_PAUSED = 5000
const queuesByLimiter = new WeakMap<TurnSource, WeakMap<object, KeyQueues>>()
const ANEW = new Error('turns are reserved anew')
const UNNEEDED = new Error('no call needs this turn any more')
