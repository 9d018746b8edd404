import { giveBack } from '../stores/giving-back.js'
import {
  type Answer,
  type Booking,
  type Caller,
  isDenied,
  type Keyspace,
  type MaybePromise,
  type Store,
} from '../stores/store.js'
import { onAbort } from '../values/abort.js'
import { storeClosed } from '../values/closing.js'
import type { PolicySet } from './policy-set.js'
import { Turns } from './turns.js'

/** A wait longer than this, in microseconds, is confirmed in the store before it ends. */
const TRUSTED_WAIT = 250_000

/** How long a queue that closes waits for the store to take places back, in milliseconds. */
const CLOSING_MS = 30

/** The calls of one limiter that wait for their turn. Their places are booked in the store; here they are woken. */
export class WaitQueue {
  readonly #store: Store
  readonly #clock = new StoreClock()
  readonly #turns: Turns
  readonly #unsettled = new Set<Promise<unknown>>()
  readonly #waiters = new Set<(error: Error) => void>()
  #closed: Error | undefined

  constructor(store: Store) {
    this.#store = store
    this.#turns = new Turns(() => store.now())
  }

  /**
   * Resolves at the turn of a call, or at once when it is denied. A place that is lost or held at its turn is booked again.
   * Rejects when `signal` aborts, or when the queue or the store closes, and then gives the place back.
   */
  turn(set: PolicySet, key: string, cost: number, maxWait: number, signal?: AbortSignal): Promise<Turn> {
    const turn = this.#bookAndWait(set, key, cost, maxWait, signal)
    this.#track(turn)
    return turn
  }

  /** Calls that wait for the store or for their turn. */
  get size(): number {
    return this.#waiters.size
  }

  /** Rejects all waiting calls with `error`. Resolves when their places are given back, or 30 ms later. */
  async close(error: Error): Promise<void> {
    this.#closed = error
    for (const reject of this.#waiters) reject(error)
    let timer: ReturnType<typeof setTimeout>
    const timeout = new Promise<void>((resolve) => (timer = setTimeout(resolve, CLOSING_MS)))
    await Promise.race([Promise.allSettled(this.#unsettled), timeout])
    clearTimeout(timer!)
  }

  async #bookAndWait(
    set: PolicySet,
    key: string,
    cost: number,
    maxWait: number,
    signal?: AbortSignal,
  ): Promise<Turn> {
    signal?.throwIfAborted()
    const start = this.#store.now()
    let left = maxWait
    let asked = 0
    for (;;) {
      const sent = this.#store.now()
      const caller: BookingCaller = { gone: false, unsent: false }
      // In shadow mode no call waits, not for the store either.
      const booked = set.keyspace.decide('book', key, cost, left, set.enforce ? caller : undefined)
      const undo = (late: Answer): Promise<void> => giveBack(keyspaceOf(set, late), key, cost, late)
      const answer = booked instanceof Promise ? await this.#answerTo(booked, caller, undo, signal) : booked
      const received = this.#store.now()
      if (booked instanceof Promise) asked += received - sent
      const wait = answer.at - answer.now
      // The time of another store is that of another clock.
      const turnAt = answer.degraded
        ? received + wait
        : this.#clock.toLocal(answer.at, answer.now, sent, received)
      // A call that need not wait must not overtake those whose turns have passed unseen.
      const isNow = wait <= 0 && !this.#turns.isLate(received)
      if (isDenied(answer) || !set.enforce || isNow)
        return { answer, waited: received - start, late: 0, asked }
      const place = new KeyspaceBooking(keyspaceOf(set, answer), answer.booking)
      try {
        await this.#sleep(turnAt, signal)
        if (wait <= TRUSTED_WAIT || (await this.#stands(place, signal))) {
          const now = this.#store.now()
          return { answer, waited: now - start, late: now - turnAt, asked }
        }
      } catch (error) {
        await place.cancel()
        throw error
      }
      left = Math.max(0, maxWait - (this.#store.now() - start))
    }
  }

  /** The answer to a booking. If the caller leaves before, its charge is given back when the answer comes. */
  #answerTo(
    booked: Promise<Answer>,
    caller: BookingCaller,
    undo: (late: Answer) => Promise<void>,
    signal?: AbortSignal,
  ): Promise<Answer> {
    let isSettled = false
    const settled = (): unknown => (isSettled = true)
    booked.then(settled, settled)
    return this.#unlessLeft(signal, (resolve, reject) => {
      booked.then(resolve, reject)
      return () => {
        if (isSettled) return
        caller.gone = true
        caller.left?.()
        this.#track(booked.then(undo))
      }
    })
  }

  #sleep(until: number, signal?: AbortSignal): Promise<void> {
    return this.#unlessLeft<void>(signal, (resolve, fail) => {
      const wake = (): void => {
        if (signal?.aborted) fail(signal.reason)
        else if (this.#closed) fail(this.#closed)
        else resolve()
      }
      return this.#turns.add({ at: until, wake, fail })
    })
  }

  #stands(place: KeyspaceBooking, signal?: AbortSignal): Promise<boolean> {
    return this.#unlessLeft(signal, (resolve) => {
      void place.stands().then(resolve)
      return () => {}
    })
  }

  /** Rejects when `signal` aborts, or when the queue or the store closes. `begin` returns what ends its work, whatever the outcome. */
  #unlessLeft<T>(
    signal: AbortSignal | undefined,
    begin: (resolve: (value: T) => void, reject: (error: unknown) => void) => () => void,
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      let end = (): void => {} // until `begin` has returned
      let isSettled = false
      const settle = (how: () => void): void => {
        if (isSettled) return
        isSettled = true
        stopListening?.()
        stopWatching?.()
        this.#waiters.delete(fail)
        end()
        how()
      }
      const abort = (): void => settle(() => reject(signal!.reason))
      const fail = (error: unknown): void => settle(() => reject(error))
      const stopListening = signal && onAbort(signal, abort)
      const { closed } = this.#store
      const stopWatching = closed && onAbort(closed, () => fail(storeClosed()))
      this.#waiters.add(fail)
      end = begin((value) => settle(() => resolve(value)), fail)
      if (this.#closed) fail(this.#closed)
      else if (signal?.aborted) abort()
    })
  }

  /** Makes `close` wait until `work` has settled. */
  #track(work: Promise<unknown>): void {
    this.#unsettled.add(work)
    const forget = (): unknown => this.#unsettled.delete(work)
    work.then(forget, forget)
  }
}

interface BookingCaller extends Caller {
  gone: boolean
}

/** The end of a wait. Times are microseconds. */
export interface Turn {
  readonly answer: Answer
  /** From the call to its turn. */
  readonly waited: number
  /** From the turn to its end here. */
  readonly late: number
  /** Spent on answers of a store elsewhere. */
  readonly asked: number
}

function keyspaceOf(set: PolicySet, answer: Answer): Keyspace {
  return answer.degraded?.by ?? set.keyspace
}

/** A booking, in the keyspace that holds it, of a call that waits. A failure of the store rejects nothing here. */
export class KeyspaceBooking {
  readonly #keyspace: Keyspace
  readonly #booking: Booking | undefined
  #cancelled: Promise<boolean> | undefined

  constructor(keyspace: Keyspace, booking: Booking | undefined) {
    this.#keyspace = keyspace
    this.#booking = booking
  }

  /** Whether the call may pass at its turn. A booking on a held key is cancelled; if the store cannot confirm, the booking stands. */
  async stands(): Promise<boolean> {
    const booking = this.#booking
    if (!booking) return true
    const state = await attempt(() => this.#keyspace.confirm(booking), 'stands')
    if (state === 'held') await this.cancel()
    return state === 'stands'
  }

  /** Cancels the booking, once however often it is called. If the store fails, it stays. */
  async cancel(): Promise<void> {
    const booking = this.#booking
    if (booking) await (this.#cancelled ??= attempt(() => this.#keyspace.cancel(booking), false))
  }
}

/** The result of `act`, or `otherwise` if the store fails. */
async function attempt<T>(act: () => MaybePromise<T>, otherwise: T): Promise<T> {
  try {
    return await act()
  } catch {
    return otherwise
  }
}

/**
 * The store's clock as this process sees it. An answer holds the store's time at its decision, which lies somewhere between
 * sending the call and receiving the answer. The answer with the shortest way back is the most precise one, so an answer
 * that was received late because this process was busy delays no turn.
 */
export class StoreClock {
  /** The smallest difference between the local instant of an answer's receipt and the store's time in it. */
  #offset = Infinity
  #previousOffset = Infinity
  #since = -Infinity

  /**
   * The local instant, in microseconds, of the store's instant `at`. It comes from an answer that was decided at `now`,
   * sent for at `sent` and received at `received`. It is not early, as long as both clocks run at the same speed.
   */
  toLocal(at: number, now: number, sent: number, received: number): number {
    if (received - this.#since >= REMEMBERED_US) {
      this.#previousOffset = received - this.#since < 2 * REMEMBERED_US ? this.#offset : Infinity
      this.#offset = Infinity
      this.#since = received
    }
    this.#offset = Math.min(this.#offset, received - now)
    const decidedAt = now + Math.min(this.#offset, this.#previousOffset)
    // After a clock was set, the remembered offset is wrong. These bounds still hold.
    return at - now + Math.max(sent, Math.min(received, decidedAt))
  }
}

/** Short enough for clocks not to drift apart meanwhile. */
const REMEMBERED_US = 1_000_000
