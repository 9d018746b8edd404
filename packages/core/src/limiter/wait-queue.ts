import { giveBack } from '../stores/giving-back.js'
import {
  type Answer,
  type Booking,
  type Caller,
  isDenied,
  type Keyspace,
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
  readonly #clock = new StoreClock()
  readonly #turns: Turns
  /** By key, the place that was booked last, until its call has passed or left. */
  readonly #latest = new Map<string, InOrder>()
  readonly #unsettled = new Set<Promise<unknown>>()
  readonly #waiters = new Set<(error: Error) => void>()
  #closed: Error | undefined

  constructor(private readonly store: Store) {
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
    const start = this.store.now()
    let left = maxWait
    let asked = 0
    for (;;) {
      const sent = this.store.now()
      const caller: BookingCaller = { gone: false, unsent: false }
      // In shadow mode no call waits, not for the store either.
      const booked = set.keyspace.decide('book', key, cost, left, set.enforce ? caller : undefined)
      // If the store fails, the booking stays.
      const undo = (made: Answer): Promise<void> =>
        giveBack(keyspaceOf(set, made), key, cost, made).catch(() => {})
      const answer = booked instanceof Promise ? await this.#answerTo(booked, caller, undo, signal) : booked
      const received = this.store.now()
      if (booked instanceof Promise) asked += received - sent
      const wait = answer.at - answer.now
      // The time of another store is that of another clock.
      const turnAt = answer.degraded
        ? received + wait
        : this.#clock.toLocal(answer.at, answer.now, sent, received)
      const before = this.#before(key, answer)
      // A call that need not wait must not overtake those whose turns have passed unseen.
      const isNow = wait <= 0 && !before && !this.#turns.isLate(received)
      if (isDenied(answer) || !set.enforce || isNow)
        return { answer, waited: received - start, late: 0, asked }
      const inOrder = new InOrder(answer)
      this.#latest.set(key, inOrder)
      try {
        await this.#sleep(turnAt, signal)
        const { booking } = answer
        const isTrusted = wait <= TRUSTED_WAIT || !booking
        const [state] = await Promise.all([
          isTrusted ? 'stands' : this.#confirm(keyspaceOf(set, answer), booking, signal),
          before && this.#passed(before, signal),
        ])
        if (state === 'stands') {
          const now = this.store.now()
          return { answer, waited: now - start, late: now - turnAt, asked }
        }
        if (state === 'held') await undo(answer)
      } catch (error) {
        await undo(answer)
        throw error
      } finally {
        if (this.#latest.get(key) === inOrder) this.#latest.delete(key)
        inOrder.pass()
      }
      left = Math.max(0, maxWait - (this.store.now() - start))
    }
  }

  /** The answer to a booking. If the caller leaves before, its charge is given back when the answer comes. */
  #answerTo(
    booked: Promise<Answer>,
    caller: BookingCaller,
    undo: (late: Answer) => Promise<void>,
    signal?: AbortSignal,
  ): Promise<Answer> {
    return this.#unlessLeft(signal, (resolve, reject) => {
      booked.then(resolve, reject)
      return () => {
        caller.gone = true
        caller.left?.()
        this.#track(booked.then(undo))
      }
    })
  }

  #sleep(at: number, signal?: AbortSignal): Promise<void> {
    return this.#unlessLeft(signal, (wake, fail) => this.#turns.add({ at, wake, fail }))
  }

  #passed(before: InOrder, signal?: AbortSignal): Promise<void> {
    return this.#unlessLeft(signal, (resolve) => {
      void before.passed.then(resolve)
      return () => {}
    })
  }

  /** Whether a booking is still valid at its turn. If the store cannot say so, it is. */
  #confirm(keyspace: Keyspace, booking: Booking, signal?: AbortSignal): Promise<'stands' | 'lost' | 'held'> {
    return this.#unlessLeft(signal, (resolve) => {
      const state = Promise.resolve().then(() => keyspace.confirm(booking))
      state.then(resolve, () => resolve('stands'))
      return () => {}
    })
  }

  /**
   * The place before this one on its key, while it is not served. Local instants of turns are estimates, and some places are
   * confirmed first, so a call waits for it even if its own turn seems to have come.
   */
  #before(key: string, { at, degraded }: Answer): InOrder | undefined {
    const latest = this.#latest.get(key)
    return latest && !degraded && latest.at <= at ? latest : undefined
  }

  /**
   * Rejects when `signal` aborts, or when the queue or the store closes, and then calls what `begin` has returned. No promise
   * lies between `begin` and its outcome: calls that need not wait would overtake a call that is woken.
   */
  #unlessLeft<T>(
    signal: AbortSignal | undefined,
    begin: (resolve: (value: T) => void, reject: (error: unknown) => void) => () => void,
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      const end = (): void => {
        stopListening?.()
        stopWatching?.()
        this.#waiters.delete(leave)
      }
      const leave = (error: unknown): void => {
        end()
        left()
        reject(error)
      }
      const { closed } = this.store
      const stopListening = signal && onAbort(signal, () => leave(signal.reason))
      const stopWatching = closed && onAbort(closed, () => leave(storeClosed()))
      this.#waiters.add(leave)
      const left = begin(
        (value) => (end(), resolve(value)),
        (error) => (end(), reject(error)),
      )
      if (this.#closed) leave(this.#closed)
      else if (signal?.aborted) leave(signal.reason)
    })
  }

  /** Makes `close` wait until `work` has settled. */
  #track(work: Promise<unknown>): void {
    this.#unsettled.add(work)
    const forget = (): unknown => this.#unsettled.delete(work)
    work.then(forget, forget)
  }
}

/** A place in the order of its key. */
class InOrder {
  /** The instant on the store's clock; NaN if another clock decided. */
  readonly at: number
  readonly passed: Promise<void>
  pass = (): void => {}

  constructor({ at, degraded }: Answer) {
    this.at = degraded ? NaN : at
    this.passed = new Promise((resolve) => (this.pass = resolve))
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
