import { Instants } from './instants.js'
import type { Plan } from './plan.js'
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

/** A wait longer than this, in microseconds, is confirmed in the store before it ends. */
const TRUSTED_WAIT = 250_000

/** How long a queue that closes waits for a store that may be out of reach. */
const PARTING_MS = 30

/** The calls of one limiter that wait for their turn. Their places lie in the store; here they only sleep. */
export class Queue {
  readonly #store: Store
  readonly #instants = new Instants()
  readonly #turns = new Set<Promise<unknown>>()
  readonly #wakeUps = new Set<(error: Error) => void>()
  #closed: Error | undefined

  constructor(store: Store) {
    this.#store = store
  }

  /**
   * Resolves at the turn of a call, or at once when it is denied. A place that was lost or is held at its turn goes
   * back to the queue. Rejects when `signal` aborts or the queue closes, and then gives the place back.
   */
  turn(plan: Plan, key: string, cost: number, maxWait: number, signal?: AbortSignal): Promise<Turn> {
    const turn = this.#take(plan, key, cost, maxWait, signal)
    this.#keep(turn)
    return turn
  }

  /** Rejects everybody who waits with `error`; resolves when they have given their places back, or 30 ms later. */
  async close(error: Error): Promise<void> {
    this.#closed = error
    for (const wakeUp of this.#wakeUps) wakeUp(error)
    let timer: ReturnType<typeof setTimeout>
    const patience = new Promise<void>((resolve) => (timer = setTimeout(resolve, PARTING_MS)))
    await Promise.race([Promise.allSettled(this.#turns), patience])
    clearTimeout(timer!)
  }

  async #take(plan: Plan, key: string, cost: number, maxWait: number, signal?: AbortSignal): Promise<Turn> {
    signal?.throwIfAborted()
    const start = this.#store.now()
    let patience = maxWait
    for (;;) {
      const sent = this.#store.now()
      const caller: Waiter = { gone: false, unsent: false }
      // In shadow mode nobody waits, for a store neither.
      const booked = plan.keyspace.decide('book', key, cost, patience, plan.enforce ? caller : undefined)
      const undo = (late: Answer): Promise<void> => giveBack(keyspaceOf(plan, late), key, cost, late)
      const answer = booked instanceof Promise ? await this.#hear(booked, caller, undo, signal) : booked
      const received = this.#store.now()
      const wait = answer.at - answer.now
      // Where another store decided, its time is of another clock.
      const comes = answer.degraded
        ? received + wait
        : this.#instants.locally(answer.at, answer.now, sent, received)
      if (isDenied(answer) || wait <= 0 || !plan.enforce) {
        const late = isDenied(answer) ? 0 : Math.max(0, received - comes)
        return { answer, waited: received - start, late }
      }
      const place = { booking: answer.booking, keyspace: keyspaceOf(plan, answer) }
      try {
        await this.#sleep(comes, signal)
      } catch (error) {
        await leave(place)
        throw error
      }
      if (wait <= TRUSTED_WAIT || (await stands(place))) {
        const now = this.#store.now()
        return { answer, waited: now - start, late: now - comes }
      }
      patience = Math.max(0, maxWait - (this.#store.now() - start))
    }
  }

  /** The answer to a booking. Who leaves does not wait for it: what it charged is given back when it comes. */
  #hear(
    booked: Promise<Answer>,
    caller: Waiter,
    undo: (late: Answer) => Promise<void>,
    signal?: AbortSignal,
  ): Promise<Answer> {
    let isHeard = false
    const heard = (settle: () => void): void => {
      isHeard = true
      settle()
    }
    return this.#unlessLeft(signal, (resolve, reject) => {
      booked.then(
        (answer) => heard(() => resolve(answer)),
        (error: unknown) => heard(() => reject(error)),
      )
      return () => {
        if (isHeard) return
        caller.gone = true
        caller.left?.()
        this.#keep(booked.then(undo))
      }
    })
  }

  /** Timers may fire early: the clock decides. */
  #sleep(until: number, signal?: AbortSignal): Promise<void> {
    return this.#unlessLeft<void>(signal, (resolve, reject) => {
      let timer: ReturnType<typeof setTimeout> | undefined
      const look = (): void => {
        try {
          const left = until - this.#store.now()
          if (left <= 0 && !this.#closed && !signal?.aborted) resolve()
          else timer = setTimeout(look, Math.ceil(left / 1000))
        } catch (error) {
          reject(error) // the store was closed meanwhile
        }
      }
      look()
      return () => clearTimeout(timer)
    })
  }

  /** Rejects when `signal` aborts or the queue closes. `begin` returns what ends its work, whatever the outcome. */
  #unlessLeft<T>(
    signal: AbortSignal | undefined,
    begin: (resolve: (value: T) => void, reject: (error: unknown) => void) => () => void,
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      let end = (): void => {} // until `begin` has returned
      const settle = (how: () => void): void => {
        signal?.removeEventListener('abort', abort)
        this.#wakeUps.delete(wakeUp)
        end()
        how()
      }
      const abort = (): void => settle(() => reject(signal!.reason))
      const wakeUp = (error: unknown): void => settle(() => reject(error))
      signal?.addEventListener('abort', abort)
      this.#wakeUps.add(wakeUp)
      end = begin((value) => settle(() => resolve(value)), wakeUp)
      if (this.#closed) wakeUp(this.#closed)
      else if (signal?.aborted) abort()
    })
  }

  /** Until it has settled, a queue that closes waits for it. */
  #keep(work: Promise<unknown>): void {
    this.#turns.add(work)
    const forget = (): unknown => this.#turns.delete(work)
    work.then(forget, forget)
  }
}

/** A caller, as the store sees it. */
interface Waiter extends Caller {
  gone: boolean
}

export interface Turn {
  readonly answer: Answer
  /** Microseconds from the call to its turn. */
  readonly waited: number
  /** Microseconds from when its turn came to when it was told. */
  readonly late: number
}

/** A place in the queue, and where it was booked. */
interface Place {
  readonly booking: Booking | undefined
  readonly keyspace: Keyspace
}

/** Where a booking was decided. */
function keyspaceOf(plan: Plan, answer: Answer): Keyspace {
  return answer.degraded?.by ?? plan.keyspace
}

/** Whether a place may be used at its turn. One that is held is given back; in doubt the place is good. */
async function stands(place: Place): Promise<boolean> {
  const { booking, keyspace } = place
  if (!booking) return true
  const state = await attempt(() => keyspace.confirm(booking), 'stands')
  if (state === 'held') await leave(place)
  return state === 'stands'
}

/** Gives a place back; where the store does not take it, it stays used. */
async function leave({ booking, keyspace }: Place): Promise<void> {
  if (booking) await attempt(() => keyspace.cancel(booking), false)
}

/** What `act` gives, or `otherwise` where the store cannot do it. */
async function attempt<T>(act: () => MaybePromise<T>, otherwise: T): Promise<T> {
  try {
    return await act()
  } catch {
    return otherwise
  }
}
