import { createLimiter, type Decision, type Limiter, type Permit, type Policy } from '@sluice/core'
import {
  type CheckedOptions,
  clearTimer,
  copiedText,
  REPORTS,
  setTimer,
  sleep,
  type TimerHandle,
} from '@sluice/core/internal'
import { RateLimitExceededError } from './exceeded.js'
import { KeyPause, type Wait } from './key-pause.js'
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
    this.#bookOnceHoldIsKnown()
  }

  /**
   * Removes the turn of a call from the queue. If it has a booking, which asks the limiter for a turn (`#booked`), that passes to the
   * first call in the queue that has none and that the booking serves as well. The last call to leave stops the timer `#growth`.
   */
  remove(turn: Turn): void {
    this.#queue.delete(turn)
    if (this.#queue.size === 0) clearTimer(this.#growth)
    if (!this.#booked.delete(turn)) return
    const { terms, policies } = turn
    const booking = { ...terms, policies }
    const heir = this.#queue.first((other) => !this.#booked.has(other) && this.#isServedBy(booking, other))
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
   * Counts the answer to an attempt that went out at `sentAt`, after which more calls may go out if the key was paused. Returns
   * who has to wait, and for how long. `isSearched`: the limit is unknown and searched for.
   */
  countAnswer(verdict: Verdict, sentAt: number, isSearched: boolean): Wait {
    this.pause ??= new KeyPause()
    const wait = this.pause.countAnswer(verdict, sentAt, isSearched)
    this.#bookOnceHoldIsKnown()
    return wait
  }

  /**
   * Cancels all bookings, which were asked of the limiter for calls that wait, so that they are made anew. `recheck` refuses a call
   * whose deadline has passed. As each booking ends, another one is made.
   */
  bookAnew(): void {
    const turns = [...this.#booked]
    this.#booked.clear()
    for (const turn of turns) {
      turn.passOn()
      turn.recheck()
    }
  }

  /**
   * Makes bookings for calls that wait, once the store knows of a pause of the key (`#holding`), so that it does not grant turns in
   * it. Calls that come before that are served by the same run.
   */
  #bookOnceHoldIsKnown(): void {
    if (this.#isBooking) return
    this.#isBooking = true
    // An async method would make three promises more for each call.
    this.#holding.then(
      () => this.#makeBookings(),
      () => {},
    )
  }

  /**
   * Makes bookings for the first turns that have none, until as many are under way as `prefetch` allows or, after a pause, the
   * pause's allowance. `#carryOutBooking` then carries each booking out.
   */
  #makeBookings(): void {
    this.#isBooking = false
    if (this.#growth !== undefined) clearTimer(this.#growth)
    const isUnbooked = (turn: Turn): boolean => !this.#booked.has(turn)
    while (this.#booked.size < this.#queue.size) {
      const turn = this.#queue.first(this.#booked.size === 0 ? undefined : isUnbooked)!
      if (this.#underWay >= turn.client.settings.prefetch) return
      const { pause } = this
      if (pause && this.#underWay >= pause.updateAllowance()) return this.#awaitGrowth(pause)
      this.#booked.add(turn)
      this.#carryOutBooking(turn, turn.book()).catch(() => {})
    }
  }

  /** Books further turns when the allowance after a pause has grown with time, unless it grows only with an answer. */
  #awaitGrowth(pause: KeyPause): void {
    const ms = pause.growsInMs(this.#underWay)
    if (ms < Infinity) this.#growth = setTimer(() => this.#bookOnceHoldIsKnown(), ms)
  }

  /**
   * Carries out a booking: takes a permit of each semaphore and then a turn of the limiter, and grants both to the call that is
   * first by then (`#grant`). If that fails, the call that has the booking is refused (`#fail`). Meanwhile the booking may have
   * passed to another call, so `options` asks with the deadline of the call that has it now.
   */
  async #carryOutBooking({ key }: Turn, booking: BookedTurn): Promise<void> {
    const { holder, permits: sources } = this.shared
    this.#underWay++
    const permits: Permit[] = []
    try {
      if (sources.length > 0) await this.#takePermits(key, booking, permits)
      const isPausedHereAlone = !holder
      if (isPausedHereAlone && this.pause)
        await waitOutPause(this.pause, key, () => booking.options(this.stored))
      let options = booking.options(this.stored)
      let decision = await this.#takeTurn(key, booking, options)
      // The store may not have heard of the pause, or have lost it. A turn within the pause has passed at its end: another is taken.
      while (decision?.allowed !== false && this.pausedMs > 0) {
        if (decision) giveBack(decision)
        await waitOutPause(this.pause!, key, () => booking.options(this.stored))
        options = booking.options(this.stored)
        decision = await this.#takeTurn(key, booking, options)
      }
      if (decision?.allowed === false) {
        const denial = new RateLimitExceededError(key, decision.reason, decision)
        // A call without a deadline is booked again, but not before a turn may be free.
        if (booking.until === Infinity && isDeniedForNow(denial)) {
          releaseUnused(permits)
          await sleep(Math.min(decision.retryAfterMs, LONGEST_WAIT_MS), options.signal)
        }
        throw denial
      }
      if (decision && booking.settle) holdUntilEnd(decision, booking.settle, booking.cost)
      this.#grant(booking, decision, permits)
    } catch (error) {
      releaseUnused(permits)
      this.#fail(booking, error)
    }
    this.#underWay--
    this.#bookOnceHoldIsKnown()
  }

  /**
   * Takes a permit of each semaphore, one after the other, and adds it to `taken`, so that the caller can release those that were
   * taken if this fails. Rejects if a permit is not to be had before the deadline of the call that has the booking.
   */
  async #takePermits(key: string, booking: BookedTurn, taken: Permit[]): Promise<void> {
    for (const source of permitsOf(this.shared.permits, key, booking.keys)) {
      const { maxWait, signal } = booking.options(this.stored)
      const options = { maxWait, signal, [REPORTS]: booking }
      const permit = await source.semaphore.acquire(source.key, options)
      if (!permit.allowed) throw new RateLimitExceededError(key, 'concurrency')
      taken.push(permit)
    }
  }

  /** Waits for a turn of the limiter; of one that reserves, for a reservation of the units that are settled at the call's end. */
  #takeTurn(key: string, { settle, cost }: BookedTurn, options: CheckedOptions) {
    const { limiter } = this.shared
    if (!settle || cost === 0 || !limiter?.reserves) return limiter?.acquire(key, options)
    return limiter.reserve!(key, { ...options, ttl: settle.ttl, atEnd: settle.atEnd ? cost : 0 })
  }

  /**
   * Ends a booking that got its permits and its turn (`decision`), and grants them to the call that is first by now among those
   * that it serves. The call that it was booked for, if it is another, gets the booking of the first in exchange, or none. If
   * all these calls have left, permits and turn are given back.
   */
  #grant(booking: BookedTurn, decision: Decision | undefined, permits: readonly Permit[]): void {
    const bookedFor = booking.end()
    const firstInLine = this.#queue.first((other) => this.#isServedBy(booking, other))
    const hadBookingToo = firstInLine !== undefined && this.#booked.delete(firstInLine)
    if (!hadBookingToo && bookedFor) this.#booked.delete(bookedFor)
    if (!firstInLine) {
      booking.reports?.forEach((report) => report())
      releaseUnused(permits)
      if (decision) giveBack(decision)
      bookedFor?.passOn()
      return bookedFor?.recheck()
    }
    if (bookedFor !== firstInLine) firstInLine.passOn(bookedFor)
    this.#queue.take(firstInLine)
    this.pause?.sent()
    const { key } = firstInLine
    if (booking.reports) firstInLine.addReports(booking.reports)
    firstInLine.granted(decision, permits)
    if (bookedFor !== firstInLine) bookedFor?.recheck()
    const { lateness } = firstInLine.client.settings
    if (decision && decision.lateMs > (lateness ?? LEAST_LATENESS_MS))
      this.#payAgain(key, booking, lateness, decision)
  }

  /**
   * Ends a booking that failed, and refuses the call that had it. The call stays, and gets another booking, if this one was
   * cancelled or was asked for with an earlier deadline than the call's; and, if the call has no deadline, after a denial only
   * for now: a limiter books at most a day ahead.
   */
  #fail(booking: BookedTurn, failure: unknown): void {
    const { isCancelled, until } = booking
    const turn = booking.end()
    if (!turn) return booking.reports?.forEach((report) => report())
    this.#booked.delete(turn)
    if (booking.reports) turn.addReports(booking.reports)
    turn.passOn()
    const hadEarlierDeadline = turn.until > until
    const isWaitUnbounded = until === Infinity
    const mayStay = isCancelled || hadEarlierDeadline || (isWaitUnbounded && isDeniedForNow(failure))
    if (mayStay) turn.recheck()
    else turn.refused(failure)
  }

  /** Whether a booking serves a turn: both have the same cost, policies, settlement and keys of permits. */
  #isServedBy(
    booking: Pick<BookedTurn, 'cost' | 'policies' | 'keys'> & Pick<CallTerms, 'settle'>,
    turn: Turn,
  ): boolean {
    const { cost, policies, keys, settle } = booking
    const { terms } = turn
    const hasSameKey = ({ place }: OwnPermits): boolean =>
      place === undefined || keyAt(terms.keys, place) === keyAt(keys, place)
    return (
      terms.cost === cost &&
      turn.policies === policies &&
      terms.settle === settle &&
      this.shared.permits.every(hasSameKey)
    )
  }

  /**
   * Books a further turn and leaves it unused, to make up for a call that went out late: the calls behind it follow more closely
   * than the limit allows. If less than a window of turns is booked ahead, each window with the late call then has an unused turn:
   * this one, or the one that the call missed. Without the option `lateness`, a delay of up to 1 % of the window needs none, as a
   * limit should be further below the provider's than that. The turn is no call, so listeners of the limiter do not hear of it.
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
  #sweepAtSize = LEAST_SWEPT_SIZE

  /**
   * Begins without queues; each key gets one with its first call. `holder` is the limiter of the client's options: it grants the
   * turns, and it holds a paused key for the whole fleet. Without it, a limiter that `limitBy` makes later becomes `limiter`, which
   * only grants turns. `permits` are the semaphores of which each call also takes a permit.
   */
  constructor(
    readonly holder: TurnSource | undefined,
    readonly permits: readonly OwnPermits[],
  ) {
    this.limiter = holder
  }

  /** Makes a limiter of these policies if there is none yet, and returns it; otherwise returns undefined. */
  limitBy(policies: readonly Policy[]): Limiter | undefined {
    return this.limiter ? undefined : (this.limiter = createLimiter({ policies }))
  }

  /** Returns the queue of a key, as stores keep the key. Makes it if there is none; a queue that no call needs may be dropped. */
  get(stored: string): KeyQueue {
    let queue = this.#queues.get(stored)
    if (!queue) {
      if (this.#queues.size >= this.#sweepAtSize) this.#sweep()
      const own = copiedText(stored)
      this.#queues.set(own, (queue = new KeyQueue(this, own)))
    }
    return queue
  }

  /**
   * Drops the queues that no call needs, except the newest 5,000 (`MOST_PAUSED`) of those whose key is paused, because with the
   * queue the pause is forgotten. Sets when the next sweep is due: at twice as many queues as are left, at least 100.
   */
  #sweep(): void {
    const unused = [...this.#queues.values()].filter((keyQueue) => !keyQueue.isUsed)
    const paused = unused.filter((keyQueue) => keyQueue.pausedMs > 0)
    const kept = new Set(paused.slice(-MOST_PAUSED))
    for (const keyQueue of unused) if (!kept.has(keyQueue)) this.#queues.delete(keyQueue.stored)
    this.#sweepAtSize = Math.max(LEAST_SWEPT_SIZE, 2 * this.#queues.size)
  }
}

/**
 * Returns the queues of keys that all clients of this process with this limiter and these semaphores share, and makes them for the
 * first client. They are kept in weak maps, by the limiter and then by its first semaphore (or again the limiter, without one).
 */
export function sharedKeyQueues(limiter: TurnSource, permits: readonly OwnPermits[]): KeyQueues {
  const bySemaphore = queuesByLimiter.get(limiter) ?? new WeakMap<object, KeyQueues[]>()
  queuesByLimiter.set(limiter, bySemaphore)
  const semaphoreOrLimiter = permits[0]?.semaphore ?? limiter
  const candidates = bySemaphore.get(semaphoreOrLimiter) ?? []
  bySemaphore.set(semaphoreOrLimiter, candidates)
  const isSame = ({ semaphore, place }: OwnPermits, i: number): boolean =>
    semaphore === permits[i]?.semaphore && place === permits[i].place
  let shared = candidates.find(
    (candidate) => candidate.permits.length === permits.length && candidate.permits.every(isSame),
  )
  if (!shared) candidates.push((shared = new KeyQueues(limiter, permits)))
  return shared
}

/**
 * Waits until the pause of a key has ended, where no limiter has done so: without one, or if it does not know of the pause.
 * Throws if the pause is longer than the `maxWait` of `options()`, or its signal aborts.
 */
async function waitOutPause(pause: KeyPause, key: string, options: () => CheckedOptions): Promise<void> {
  // Timers may fire early, so the time that is left is read again after each sleep.
  for (;;) {
    const { leftMs } = pause
    if (leftMs <= 0) return
    const { maxWait, signal } = options()
    if (leftMs > maxWait) throw new RateLimitExceededError(key, 'held')
    await sleep(Math.ceil(leftMs), signal)
  }
}

/** Whether a call was refused only for now: there is no permit yet, or its turn is later than a limiter books ahead. */
function isDeniedForNow(failure: unknown): boolean {
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
const LEAST_SWEPT_SIZE = 100
/** The limiter holds a key whose pause is forgotten here all the same. */
const MOST_PAUSED = 5000
const queuesByLimiter = new WeakMap<TurnSource, WeakMap<object, KeyQueues[]>>()
