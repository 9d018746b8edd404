import { createLimiter, type Decision, type Limiter, type Permit, type Policy } from '@sluice/core'
import {
  type CheckedOptions,
  clearTimer,
  ownText,
  REPORTS,
  setTimer,
  sleep,
  type TimerHandle,
} from '@sluice/core/internal'
import { RateLimitExceededError } from './exceeded.js'
import { type Heeded, KeyPause } from './key-pause.js'
import { PriorityQueue } from './priority-queue.js'
import { type BookedTurn, type CallTerms, LONGEST_WAIT_MS, releaseUnused, type Turn } from './turn.js'
import { giveBack, holdUntilEnd } from './settle.js'
import type { Verdict } from './verdict.js'
import { keyAt, type OwnPermits, permitsOf } from './waiting-options.js'

/**
 * The turns of this process that wait for one key of a limiter. At most `prefetch` turns are booked at a time; each is
 * given to the call that is first when it comes, so a new call of high priority waits for at most that many. The permit of
 * the semaphore is taken before the turn of the limiter: a turn is an instant, which a wait for the permit would miss.
 */
export class KeyQueue {
  /** Undefined until the other side has asked for a pause or refused a call. */
  pause: KeyPause | undefined
  /** Those that wait for this key: in this queue, before another attempt, or in a client that is paused. */
  readonly turns = new Set<Turn>()
  readonly #queue = new PriorityQueue<Turn>()
  /** Those of the queue that have a booking. */
  readonly #booked = new Set<Turn>()
  /** Bookings that have not ended, also those that are cancelled. */
  #underWay = 0
  #holding: Promise<unknown> = KNOWN
  /** Turns that are added meanwhile are served together. */
  #isBooking = false
  /** Books further turns when more calls may go out after a pause. */
  #growth: TimerHandle | undefined

  /** The queue of a key, as stores keep it. */
  constructor(
    readonly shared: KeyQueues,
    readonly stored: string,
  ) {}

  /** Milliseconds until the pause ends, 0 without one. */
  get pausedMs(): number {
    return this.pause?.leftMs ?? 0
  }

  /** Whether turns wait or are booked. If not, the queue can be dropped, and only its pause is lost. */
  get isUsed(): boolean {
    return this.turns.size + this.#underWay > 0
  }

  /** Adds a turn to the queue, and makes bookings if more may be made. The turn is granted or refused later. */
  add(turn: Turn): void {
    this.#queue.add(turn)
    this.#book()
  }

  /** Removes a turn from the queue. Its booking passes to the first one of the same cost and policies that has none. */
  remove(turn: Turn): void {
    this.#queue.delete(turn)
    if (this.#queue.size === 0) clearTimer(this.#growth)
    if (!this.#booked.delete(turn)) return
    const { terms, policies } = turn
    const alike = { ...terms, policies }
    const heir = this.#queue.first((other) => !this.#booked.has(other) && this.#isFor(other, alike))
    turn.passOn(heir)
    if (heir) this.#booked.add(heir)
  }

  /**
   * Pauses the key for `ms` milliseconds, after the answer to an attempt that went out at `sentAt`: here, and by the limiter's
   * `hold` in every process that shares it. Returns false, and changes nothing, if that pause is known.
   */
  hold(key: string, ms: number, sentAt: number, policies: readonly Policy[] | undefined): boolean {
    this.pause ??= new KeyPause()
    if (!this.pause.begin(ms, sentAt)) return false
    const options = { ...(policies && { policies }) }
    this.#holding = this.shared.holder?.hold(key, Math.ceil(ms), options).catch(() => {}) ?? KNOWN
    // Booked turns may be too close to be confirmed by the store.
    this.bookAnew()
    return true
  }

  /**
   * Passes the verdict on an attempt that went out at `sentAt` to the pause of the key. Returns who has to wait, and for how
   * long.
   */
  heed(verdict: Verdict, sentAt: number, isSearched: boolean): Heeded {
    this.pause ??= new KeyPause()
    const heeded = this.pause.heed(verdict, sentAt, isSearched)
    this.#book()
    return heeded
  }

  /** Cancels all bookings. As each ends, `#serve` makes another one. */
  bookAnew(): void {
    const turns = [...this.#booked]
    this.#booked.clear()
    for (const turn of turns) {
      turn.passOn()
      turn.recheck()
    }
  }

  /** Makes bookings (`#fill`), once the store knows of the pause. Turns that are added before that are served by the same run. */
  #book(): void {
    if (this.#isBooking) return
    this.#isBooking = true
    // An async method would make three promises more for each call.
    this.#holding.then(
      () => this.#fill(),
      () => {},
    )
  }

  /**
   * Makes bookings for the first turns that have none: up to `prefetch` at a time, and after a pause up to its allowance.
   */
  #fill(): void {
    this.#isBooking = false
    if (this.#growth !== undefined) clearTimer(this.#growth)
    const isFree = (turn: Turn): boolean => !this.#booked.has(turn)
    while (this.#booked.size < this.#queue.size) {
      const turn = this.#queue.first(this.#booked.size === 0 ? undefined : isFree)!
      if (this.#underWay >= turn.client.settings.prefetch) return
      const { pause } = this
      if (pause && this.#underWay >= pause.allowance) return this.#awaitGrowth(pause)
      this.#booked.add(turn)
      this.#serve(turn, turn.book()).catch(() => {})
    }
  }

  /** Sets a timer to book further turns when the allowance has grown with time. Infinity: it grows only with an answer. */
  #awaitGrowth(pause: KeyPause): void {
    const ms = pause.growsInMs(this.#underWay)
    if (ms < Infinity) this.#growth = setTimer(() => this.#book(), ms)
  }

  /**
   * Gets a permit of each semaphore and then a turn of the limiter by a booking, which may pass to another turn meanwhile,
   * and grants both to the one that is first by then. If that fails, the one that has the booking is refused (`#fail`).
   */
  async #serve({ key }: Turn, booking: BookedTurn): Promise<void> {
    const { holder, limiter, permits: sources } = this.shared
    this.#underWay++
    const permits: Permit[] = []
    try {
      for (const source of sources.length > 0 ? permitsOf(sources, key, booking.keys) : []) {
        const { maxWait, signal } = booking.options(this.stored)
        const options = { maxWait, signal, [REPORTS]: booking }
        const permit = await source.semaphore.acquire(source.key, options)
        if (!permit.allowed) throw new RateLimitExceededError(key, 'concurrency')
        permits.push(permit)
      }
      if (!holder && this.pause) await outlast(this.pause, key, () => booking.options(this.stored))
      const options = booking.options(this.stored)
      const { settle, cost } = booking
      const reserved = settle &&
        cost > 0 &&
        limiter?.reserves && { ...options, ttl: settle.ttl, atEnd: settle.atEnd ? cost : 0 }
      const decision = await (reserved ? limiter.reserve!(key, reserved) : limiter?.acquire(key, options))
      if (decision?.allowed === false) {
        const denial = new RateLimitExceededError(key, decision.reason, decision)
        if (booking.until === Infinity && isForNow(denial)) {
          releaseUnused(permits)
          await sleep(Math.min(decision.retryAfterMs, LONGEST_WAIT_MS), options.signal)
        }
        throw denial
      }
      if (decision && settle) holdUntilEnd(decision, settle, cost)
      // The store may not have heard of the pause, or have lost it.
      if (this.pause && this.pausedMs > 0) {
        await outlast(this.pause, key, () => booking.options(this.stored)).catch((error: unknown) => {
          if (decision) giveBack(decision)
          throw error
        })
      }
      this.#grant(booking, decision, permits)
    } catch (error) {
      releaseUnused(permits)
      this.#fail(booking, error)
    }
    this.#underWay--
    this.#book()
  }

  /**
   * Gives the turn to the call that is first by now among those that it serves (`#isFor`). The one that it was booked for,
   * if it is another, gets the booking of the first in exchange, or none. If all have left, permits and turn are given back.
   */
  #grant(booking: BookedTurn, decision: Decision | undefined, permits: readonly Permit[]): void {
    const turn = booking.end()
    const first = this.#queue.first((other) => this.#isFor(other, booking))
    // One of the two has no booking from now on.
    if (!(first && this.#booked.delete(first)) && turn) this.#booked.delete(turn)
    if (!first) {
      booking.reports?.forEach((report) => report())
      releaseUnused(permits)
      if (decision) giveBack(decision)
      turn?.passOn()
      return turn?.recheck()
    }
    if (turn !== first) first.passOn(turn)
    this.#queue.take(first)
    this.pause?.sent()
    const { key } = first
    if (booking.reports) first.hears(booking.reports)
    first.granted(decision, permits)
    if (turn !== first) turn?.recheck()
    const { lateness } = first.client.settings
    if (decision && decision.lateMs > (lateness ?? LEAST_LATENESS_MS))
      this.#payAgain(key, booking, lateness, decision)
  }

  /**
   * Refuses the one that had the booking. It stays and gets another one if the booking was cancelled or was asked for
   * with an earlier deadline, and without a deadline if it is denied only for now, as a limiter books at most a day ahead.
   */
  #fail(booking: BookedTurn, failure: unknown): void {
    const { isCancelled, until } = booking
    const turn = booking.end()
    if (!turn) return booking.reports?.forEach((report) => report())
    this.#booked.delete(turn)
    if (booking.reports) turn.hears(booking.reports)
    turn.passOn()
    if (isCancelled || turn.until > until || (until === Infinity && isForNow(failure))) turn.recheck()
    else turn.refused(failure)
  }

  /** Whether a booking serves a turn: it takes so many units, under these policies and with permits of these keys. */
  #isFor(
    turn: Turn,
    booking: Pick<BookedTurn, 'cost' | 'policies' | 'keys'> & Pick<CallTerms, 'settle'>,
  ): boolean {
    const { cost, policies, keys, settle } = booking
    const { terms } = turn
    const isSame = ({ place }: OwnPermits): boolean =>
      place === undefined || keyAt(terms.keys, place) === keyAt(keys, place)
    return (
      terms.cost === cost &&
      turn.policies === policies &&
      terms.settle === settle &&
      this.shared.permits.every(isSame)
    )
  }

  /**
   * Books a turn at the end of the queue and leaves it unused, to make up for a call that went out late: those behind it follow
   * more closely than the limit allows. In a queue shorter than a window each window with the late call then has an unused turn: this
   * one, or the one that the call has missed. Without the option `lateness`, a delay of 1 % of the window needs none, as a limit should be further
   * below the provider's than that. It is no call, so the listeners of the limiter do not hear of it.
   */
  #payAgain(key: string, booking: BookedTurn, lateness: number | undefined, decision: Decision): void {
    const { limiter } = this.shared
    const windowMs = limiter?.windowMs ?? Math.min(...decision.policies.map((policy) => policy.windowMs))
    if (lateness === undefined && decision.lateMs <= windowMs / 100) return
    const { cost, policies } = booking
    const options = { [REPORTS]: UNHEARD, cost, ...(policies && { policies }), maxWait: LONGEST_WAIT_MS }
    limiter?.acquire(key, options).catch(() => {})
  }
}

/** A limiter, or unknown rates in its place. Only those have a window of their own. */
export type TurnSource = Pick<Limiter, 'acquire' | 'hold'> &
  Partial<Pick<Limiter, 'reserve' | 'reserves'>> & { readonly windowMs?: number }

/** A limiter and semaphores, with the queues of their keys. Clients that share all of them share the queues. */
export class KeyQueues {
  /** Gives calls their turn. */
  limiter: TurnSource | undefined
  /** By stored key. */
  readonly #queues = new Map<string, KeyQueue>()
  #sweepAt = LEAST_SWEPT

  /**
   * `holder` is the limiter of the client's options: it grants the turns, and it holds a paused key for the whole fleet. Without
   * it, a limiter that `limitBy` makes later becomes `limiter`, which only grants turns.
   */
  constructor(
    readonly holder: TurnSource | undefined,
    readonly permits: readonly OwnPermits[],
  ) {
    this.limiter = holder
  }

  /** Makes a limiter of these policies, and returns it, if there is none. */
  limitBy(policies: readonly Policy[]): Limiter | undefined {
    return this.limiter ? undefined : (this.limiter = createLimiter({ policies }))
  }

  /**
   * The queue of a key, as stores keep it; made for the first call that asks for it, and perhaps dropped while no call needs
   * it.
   */
  get(stored: string): KeyQueue {
    let queue = this.#queues.get(stored)
    if (!queue) {
      if (this.#queues.size >= this.#sweepAt) this.#sweep()
      const own = ownText(stored)
      this.#queues.set(own, (queue = new KeyQueue(this, own)))
    }
    return queue
  }

  /**
   * Drops the queues that no call needs, but the newest `MOST_PAUSED` of those whose key is paused, as the pause would be
   * forgotten.
   */
  #sweep(): void {
    const unused = [...this.#queues].filter(([, { isUsed }]) => !isUsed)
    const paused = unused.filter(([, { pausedMs }]) => pausedMs > 0)
    const kept = new Set(paused.slice(-MOST_PAUSED))
    for (const each of unused) if (!kept.has(each)) this.#queues.delete(each[0])
    this.#sweepAt = Math.max(LEAST_SWEPT, 2 * this.#queues.size)
  }
}

/** The queues of keys that all clients of this process with this limiter and these semaphores share. */
export function keyQueuesOf(limiter: TurnSource, permits: readonly OwnPermits[]): KeyQueues {
  const beside = queuesByLimiter.get(limiter) ?? new WeakMap<object, KeyQueues[]>()
  queuesByLimiter.set(limiter, beside)
  const first = permits[0]?.semaphore ?? limiter
  const all = beside.get(first) ?? []
  beside.set(first, all)
  const isSame = ({ semaphore, place }: OwnPermits, i: number): boolean =>
    semaphore === permits[i]?.semaphore && place === permits[i].place
  let known = all.find((each) => each.permits.length === permits.length && each.permits.every(isSame))
  if (!known) all.push((known = new KeyQueues(limiter, permits)))
  return known
}

/** Waits until the pause of a key has ended, in a client without a limiter that would hold the key. */
async function outlast(pause: KeyPause, key: string, options: () => CheckedOptions): Promise<void> {
  // Timers may fire early, so the time that is left is read again after each sleep.
  for (let { leftMs } = pause; leftMs > 0; { leftMs } = pause) {
    const { maxWait, signal } = options()
    if (leftMs > maxWait) throw new RateLimitExceededError(key, 'held')
    await sleep(Math.ceil(leftMs), signal)
  }
}

/** Whether a call was refused only for now: there is no permit yet, or the turn is later than a limiter books ahead. */
function isForNow(failure: unknown): boolean {
  if (!(failure instanceof RateLimitExceededError)) return false
  const { reason, decision } = failure
  return reason === 'concurrency' || (reason === 'limit' && Number.isFinite(decision?.retryAfterMs))
}

/** Keeps no report. */
const UNHEARD = { keep(): void {} }
/** No store has to know of a pause. */
const KNOWN = Promise.resolve()
/** Timers alone cause less lateness than this. */
const LEAST_LATENESS_MS = 10
/** Queues are dropped only above this number, or above twice as many as were kept at the last sweep. */
const LEAST_SWEPT = 100
/** The limiter holds a key whose pause is forgotten here all the same. */
const MOST_PAUSED = 5000
const queuesByLimiter = new WeakMap<TurnSource, WeakMap<object, KeyQueues[]>>()
