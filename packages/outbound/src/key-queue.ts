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

  /** Whether calls wait or turns are reserved. If not, the queue can be dropped, and only its pause is lost. */
  get isUsed(): boolean {
    return this.waiting > 0 || this.#reservations.size > 0
  }

  /** Adds a call to the queue, and reserves turns if more may be reserved. The call is granted its turn or refused later. */
  add(call: QueuedCall): void {
    this.#calls.add(call)
    this.#reserve().catch(() => {})
  }

  /**
   * Removes a call from the queue. The turn that is reserved for it passes to the first call of the same cost and policies that
   * has none (`heir`), since a turn serves any such call; without an heir the reservation is cancelled. With the last call the
   * timer of `#awaitGrowth` is stopped.
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
   * Pauses the key for `ms` milliseconds, after the answer to an attempt that went out at `sentAt`: here, and by the limiter's
   * `hold` in every process that shares it. Returns false, and changes nothing, if that pause is known. `#holding` resolves when
   * the store knows of the pause, or has failed. The turns that were reserved are cancelled and reserved anew, after the pause.
   */
  hold(key: string, ms: number, sentAt: number, policies: readonly Policy[] | undefined): boolean {
    this.pause ??= new KeyPause()
    if (!this.pause.begin(ms, sentAt)) return false
    const options = { ...(policies && { policies }) }
    this.#holding = this.shared.holder?.hold(key, Math.ceil(ms), options).catch(() => {})
    // Reserved turns may be too close to be confirmed by the store.
    this.reserveAnew()
    return true
  }

  /**
   * Passes the verdict on an attempt that went out at `sentAt` (on the clock of `nowMs`) to the pause of the key, which is made
   * with the first. Returns for how many milliseconds all calls of the key have to wait (`holdMs`) or this one alone (`aloneMs`).
   * As an answer may raise the number of calls that may go out after a pause, further turns are reserved.
   */
  heed(verdict: Verdict, sentAt: number): Heeded {
    this.pause ??= new KeyPause()
    const heeded = this.pause.heed(verdict, sentAt)
    this.#reserve().catch(() => {})
    return heeded
  }

  /** Cancels all reserved turns. That ends the run of `#serve` for each of them, which refuses no call and reserves anew. */
  reserveAnew(): void {
    for (const { controller } of this.#reservations) controller.abort(ANEW)
  }

  /**
   * Reserves turns for the first calls that have none: up to `prefetch` at a time, and after a pause up to its allowance, the
   * calls that may go out before a further answer comes. The allowance also grows with time, for which `#awaitGrowth` sets a
   * timer. `#holding` is awaited first, so that no turn is booked before the store knows of a pause that was just begun; calls
   * that are added meanwhile are served by the same run. The loop ends because `#serve` sets the reservation of its call at once.
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
      this.#serve(call).catch(() => {})
    }
  }

  /**
   * Sets a timer to reserve further turns when the allowance after a pause, the number of calls that may go out, has grown with
   * time. Infinity: it grows only with an answer, after which `heed` reserves turns.
   */
  #awaitGrowth(pause: KeyPause): void {
    const ms = pause.growsInMs(this.#reservations.size)
    if (ms < Infinity) this.#growth = setTimer(() => void this.#reserve().catch(() => {}), ms)
  }

  /**
   * Gets a permit of the semaphore and then a turn of the limiter for a call, and passes both to the call that is first in the
   * queue by then. `reservation.call` is the call that the turn is reserved for; it may change meanwhile. `reservation.until` is
   * the deadline with which permit and turn were asked for. If that fails, `reservation.call` is refused, unless its own deadline
   * is later: then it stays in the queue and gets another reservation. So does a call without a deadline, as a limiter books at
   * most a day ahead: `until` is set to 0, so that the deadline of the call is later. If the reservation was cancelled
   * (`aborted`), no call is refused.
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
          permit?.release('failed').catch(() => {})
          await sleep(Math.min(decision.retryAfterMs, LONGEST_WAIT_MS), controller.signal)
          reservation.until = 0
        }
        throw call.exceeded(decision.reason, decision)
      }
      this.#grant(reservation, decision, permit)
    } catch (error) {
      permit?.release('failed').catch(() => {})
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
    this.#reserve().catch(() => {})
  }

  /**
   * Gives the turn to the call that is first by now among those with its cost and policies, and sends that call out. The call
   * that the turn was reserved for, if it is another one, gets the reservation of the first in exchange, or none. If all have
   * left, permit and turn are given back; `settle(0)` sets the cost of the turn to 0. A turn that is used more than `lateness`
   * milliseconds late is paid for once more.
   */
  #grant(reservation: Reservation, decision: Decision | undefined, permit: Permit | undefined): void {
    const { cost, policies } = reservation
    const first = this.#calls.first((other) => other.terms.cost === cost && other.policies === policies)
    if (!first) {
      permit?.release('failed').catch(() => {})
      decision?.settle(0).catch(() => {})
      return
    }
    const { call } = reservation
    // The call that the turn was reserved for gets the reservation of the first one.
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
   * A call that goes out late comes closer to those behind it than the limit allows. Therefore one more turn is booked at the end
   * of the queue and left unused: if the queue is shorter than a window, each window with the late call has a gap, here or where
   * it was due. Without the option `lateness`, 1 % of the window is free, as your limit should be below the provider's by more.
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

  /**
   * `holder` is the limiter of the client's options: it grants the turns, and it holds a paused key for the whole fleet. Without
   * it, a limiter that `setPolicies` makes later becomes `limiter`, which only grants turns.
   */
  constructor(
    readonly holder: TurnSource | undefined,
    readonly semaphore: Semaphore | undefined,
  ) {
    this.limiter = holder
  }

  /**
   * The queue of a key, made for the first call that asks for it. A queue that no call needs may be dropped, and made anew for
   * another call; `#sweep` looks for such queues when their number has doubled.
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

  /**
   * Drops the queues that no call needs. Those whose key is paused are kept, as the pause would be forgotten, but only the newest
   * `MOST_PAUSED` of them. The next sweep is due when twice as many queues are there as were left by this one.
   */
  #sweep(): void {
    const unused = [...this.#queues].filter(([, { isUsed }]) => !isUsed)
    const paused = unused.filter(([, { pausedMs }]) => pausedMs > 0)
    const kept = new Set(paused.slice(-MOST_PAUSED))
    for (const each of unused) if (!kept.has(each)) this.#queues.delete(each[0])
    this.#sweepAt = Math.max(LEAST_SWEPT, 2 * this.#queues.size)
  }
}

/**
 * Returns the queues of keys that all clients of this process with this limiter and this semaphore share, made for the first of
 * them. They are found by the limiter and then by the semaphore; without a semaphore the limiter takes its place.
 */
export function keyQueuesOf(limiter: TurnSource, semaphore: Semaphore | undefined): KeyQueues {
  const beside = queuesByLimiter.get(limiter) ?? new WeakMap<object, KeyQueues>()
  queuesByLimiter.set(limiter, beside)
  const known = beside.get(semaphore ?? limiter) ?? new KeyQueues(limiter, semaphore)
  beside.set(semaphore ?? limiter, known)
  return known
}

/**
 * Waits until the pause of a key has ended, in a client without a limiter that would hold the key. Rejects if the pause lasts
 * longer than the call may wait (`maxWait`, in milliseconds), or when the reservation of its turn is cancelled.
 */
async function outlast(pause: KeyPause, call: QueuedCall, reservation: Reservation): Promise<void> {
  // Timers may fire early, so the time that is left is read again after each sleep.
  for (let { leftMs } = pause; leftMs > 0; { leftMs } = pause) {
    const { maxWait, signal } = patience(reservation)
    if (leftMs > maxWait) throw call.exceeded('held')
    await sleep(Math.ceil(leftMs), signal)
  }
}

/**
 * The options with which a permit or a turn is asked for, on behalf of the call that has the reservation now: `maxWait`, the
 * milliseconds until its deadline, at most a day, and the signal that cancels the reservation. Notes that deadline as
 * `reservation.until`: if no turn comes by then, this says nothing about a call that can wait longer, so the failure refuses only
 * calls with that deadline or an earlier one. If no call has the reservation, none waits for it, and both times are 0.
 */
function patience(reservation: Reservation): { readonly maxWait: number; readonly signal: AbortSignal } {
  const { call, controller } = reservation
  reservation.until = call?.until ?? 0
  const leftMs = Math.min(LONGEST_WAIT_MS, reservation.until - nowMs())
  return { maxWait: Math.max(0, Math.floor(leftMs)), signal: controller.signal }
}

/** Whether a denial is only for now: the limit leaves a turn, but later than the longest time for which a limiter books ahead. */
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
