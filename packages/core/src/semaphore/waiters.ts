import { isOutage } from '../resilience/failure.js'
import { MOST_TICKETS, type Permits } from '../stores/permits.js'
import type { Store } from '../stores/store.js'
import { onAbort } from '../values/abort.js'
import { storeClosed } from '../values/closing.js'
import { StoreError } from '../values/errors.js'
import type { Renewal } from './renewal.js'
import { clearTimer, nowMs, setTimer } from '../values/clock.js'

/**
 * The tickets of one semaphore of this process that wait for a permit. A store elsewhere announces a granted permit.
 * Because announcements can be lost, waiting tickets are also polled every 100 ms; polling keeps them in the queue, and
 * puts them there again where the store has lost its data.
 */
export class Waiters {
  readonly #byTicket = new Map<number, Waiter>()
  #tickets = 0
  #timer: ReturnType<typeof setTimeout> | undefined
  #isListening = false

  /**
   * Begins without waiting calls. `permits` asks the store for permits, `renewal` keeps the granted ones, and `limit` returns the
   * limit of a key at the moment. Waiting tickets are polled only if `store` is not in this process (`local`).
   */
  constructor(
    private readonly permits: Permits,
    private readonly renewal: Renewal,
    private readonly limit: (key: string) => number,
    private readonly store: Pick<Store, 'local' | 'closed'>,
  ) {}

  /**
   * Asks for a permit of `key` and waits for it up to `maxWaitMs`; with 0 it does not wait. Resolves with the number of the
   * ticket (this call) that holds the permit, undefined if none was free in time. Rejects when `signal` aborts, on errors and on
   * `close`. The wait ends once, by `granted` or `giveUp`, whichever comes first. `lost` is called if the store loses the permit
   * later, while it is held.
   */
  take(key: string, maxWaitMs: number, lost: () => void, signal?: AbortSignal): Promise<Taken> {
    return new Promise((resolve, reject) => {
      const ticket = ++this.#tickets
      let stopWatching = (): void => {} // replaced as soon as the call waits
      /** Ends the call's wait: cancels what else would end it, and has its ticket polled no more. */
      const end = (outcome: 'granted' | 'gaveUp'): void => {
        waiter.outcome = outcome
        stopWatching()
        this.#byTicket.delete(ticket)
      }
      /** Ends the wait with a permit. A poll and the answer to the call's own question can both report it. */
      const granted = (): void => {
        if (waiter.outcome) return
        end('granted')
        this.renewal.hold(key, ticket, lost)
        resolve({ ticket, waiter })
      }
      /** Ends the wait without a permit: rejects with `error`, or denies the call without one. */
      const giveUp = async (error?: unknown): Promise<void> => {
        if (waiter.outcome) return
        end('gaveUp')
        if (error === undefined) resolve({ ticket: undefined, waiter })
        else reject(error)
        if (waiter.mayBeInStore) await this.renewal.release(key, ticket) // takes the ticket out of the store's queue
      }
      const waiter = new Waiter(key, granted, giveUp)
      this.#byTicket.set(ticket, waiter)
      this.#askStore(maxWaitMs > 0 ? 'wait' : 'take', ticket, waiter).catch(() => {})
      // If a store in this process had a permit free, as for most calls, there is nothing to wait for.
      if (!waiter.outcome) stopWatching = this.#boundWait(waiter, maxWaitMs, signal)
    })
  }

  /** Calls that wait. */
  get size(): number {
    return this.#byTicket.size
  }

  /**
   * Asks the store whether waiting tickets have permits now: for each key by one call, which names its oldest tickets, at most 100.
   * Resolves when all answers have been handled; never rejects.
   */
  pollAll(): Promise<unknown> {
    const byKey = new Map<string, number[]>()
    for (const [ticket, { key }] of this.#byTicket) {
      const oldest = byKey.get(key) ?? []
      if (oldest.length < MOST_TICKETS) oldest.push(ticket)
      byKey.set(key, oldest)
    }
    return Promise.all([...byKey].map(([key, oldest]) => this.#poll(key, oldest)))
  }

  /** Rejects all calls that wait with `error`, removes their tickets from the store's queue, and ends polling. */
  async close(error: StoreError): Promise<void> {
    await Promise.all([...this.#byTicket.values()].map((waiter) => waiter.giveUp(error)))
    clearTimeout(this.#timer)
  }

  /**
   * Has a call's wait end without a permit when its longest wait is over, its signal aborts, or the store closes. Returns a function
   * that calls off all three. When the time is over the call is denied, but if the store has not once answered about it, it rejects
   * with the latest failure.
   */
  #boundWait(waiter: Waiter, maxWaitMs: number, signal: AbortSignal | undefined): () => void {
    const giveUp = (error?: unknown): void => void waiter.giveUp(error).catch(() => {})
    const timeIsOver = (): void =>
      waiter.hasStoreAnswered ? giveUp() : giveUp(waiter.failure ?? unanswered(maxWaitMs))
    const timer = maxWaitMs > 0 ? setTimer(timeIsOver, maxWaitMs) : undefined
    const stopListening = signal && onAbort(signal, () => giveUp(signal.reason))
    const { closed } = this.store
    const stopWatching = closed && onAbort(closed, () => giveUp(storeClosed()))
    return () => {
      clearTimer(timer)
      stopListening?.()
      stopWatching?.()
    }
  }

  /**
   * Asks the store for a permit for a ticket. If none is free, the ticket enters the store's queue ('wait'), or the call is denied
   * ('take'). If the store is out of reach, a waiting call waits on, and the next poll asks again; any other failure ends the call. If
   * the ticket still waits at the end, permits are watched for.
   */
  async #askStore(step: 'wait' | 'take', ticket: number, waiter: Waiter): Promise<void> {
    if (waiter.isAsking) return
    const mightBeInStore = waiter.mayBeInStore
    waiter.isAsking = true
    waiter.mayBeInStore = true // the call may reach the store before the ticket leaves
    try {
      const asked = this.permits.ask(step, waiter.key, [ticket], this.limit(waiter.key))
      const [state] = 'length' in asked ? asked : await waiter.timed(asked)
      waiter.hasStoreAnswered = true
      // A permit for a call that has left meanwhile is given back. A permit that a poll has found before is in use.
      if (state === 'held' && waiter.outcome === 'gaveUp')
        this.renewal.release(waiter.key, ticket).catch(() => {})
      else if (state === 'held') waiter.granted()
      else if (step === 'take') waiter.giveUp().catch(() => {})
    } catch (error) {
      const wasSurelyNotSent = (error as Partial<StoreError>).sent === false
      if (wasSurelyNotSent) waiter.mayBeInStore = mightBeInStore
      waiter.failure = error
      if (step === 'take' || !isOutage(error)) waiter.giveUp(error).catch(() => {})
    }
    waiter.isAsking = false
    const stillWaits = this.#byTicket.has(ticket)
    if (!stillWaits) return
    waiter.hasWaited = true
    this.#watchForPermits()
  }

  /**
   * Begins to watch for permits of waiting tickets, unless that goes on already. The store announces them by messages, after each of
   * which it is polled. A store elsewhere is also polled every 100 ms, as messages may be lost.
   */
  #watchForPermits(): void {
    if (!this.#isListening) {
      this.#isListening = true
      this.permits.listen((ticket) => {
        const waiter = this.#byTicket.get(ticket)
        if (waiter) this.#poll(waiter.key, [ticket]).catch(() => {})
      })
    }
    if (this.store.local || this.#timer !== undefined) return
    this.#timer = setTimeout(() => void this.#run().catch(() => {}), POLL_MS)
    this.#timer.unref?.()
  }

  /** Runs when the timer fires: polls the waiting tickets, and sets the timer again while there are any. */
  async #run(): Promise<void> {
    await this.pollAll()
    this.#timer = undefined
    if (this.#byTicket.size > 0) this.#watchForPermits()
  }

  /**
   * Asks the store how some waiting tickets of a key stand. If a ticket holds a permit, its call's wait ends. If the store does not
   * know a ticket any more, after a loss of state, the ticket enters the queue anew. After a failure the calls wait on, and keep it
   * as the error to report in the end.
   */
  async #poll(key: string, tickets: readonly number[]): Promise<void> {
    const waiters = tickets.map((ticket) => this.#byTicket.get(ticket)!)
    try {
      const polled = this.permits.ask('poll', key, tickets, this.limit(key))
      const states = 'length' in polled ? polled : await polled
      for (const waiter of waiters) waiter.hasStoreAnswered = true
      for (const [i, ticket] of tickets.entries()) {
        const waiter = this.#byTicket.get(ticket)
        if (states[i] === 'held' && waiter) waiter.granted()
        else if (states[i] === 'unknown' && waiter) await this.#askStore('wait', ticket, waiter)
      }
    } catch (error) {
      for (const waiter of waiters) waiter.failure = error
    }
  }
}

/** The error of a call that has waited for `ms` milliseconds without one answer of the store. */
function unanswered(ms: number): StoreError {
  return new StoreError('STORE_TIMEOUT', `the store did not answer within ${ms} ms`)
}

const POLL_MS = 100

/** How a call ended that asked for a permit. */
interface Taken {
  /** Holds a permit; undefined if none was free in time. */
  readonly ticket: number | undefined
  readonly waiter: Waiter
}

/** A call that asks for a permit. */
class Waiter {
  /** Undefined while the call waits. */
  outcome: 'granted' | 'gaveUp' | undefined
  /** Whether an answer to its own question (`#askStore`) is outstanding. */
  isAsking = false
  /** Whether the store may hold the ticket. */
  mayBeInStore = false
  /** Whether the store has answered about the call. */
  hasStoreAnswered = false
  /** Why the latest question about the call failed. */
  failure: unknown
  /** Whether the store's first answer granted no permit. */
  hasWaited = false
  /** On the clock of `nowMs`; undefined while no answer of a store elsewhere is outstanding. */
  #askedAt: number | undefined
  #answeredMs = 0

  /**
   * A call that asks for a permit of `key`. `granted` ends its wait with the permit; `giveUp` ends it without: with an error that
   * rejects the call, or, if there is none, with a denial.
   */
  constructor(
    readonly key: string,
    readonly granted: () => void,
    readonly giveUp: (error?: unknown) => Promise<void>,
  ) {}

  /** Milliseconds of waiting for a store elsewhere so far: for the answers that came, and for one that is outstanding. */
  get storeMs(): number {
    return this.#answeredMs + (this.#askedAt === undefined ? 0 : nowMs() - this.#askedAt)
  }

  /** Returns the result of `answer`, a promise of the store, and adds the time until it came, or failed, to `storeMs`. */
  async timed<T>(answer: Promise<T>): Promise<T> {
    this.#askedAt = nowMs()
    try {
      return await answer
    } finally {
      this.#answeredMs += nowMs() - this.#askedAt
      this.#askedAt = undefined
    }
  }
}
