import type { Patience } from './patience.js'
import type { Plan } from './plan.js'
import type { Answer, Booking, Store } from './stores/store.js'

/** A wait longer than this, in microseconds, is confirmed in the store before it ends. */
const TRUSTED_WAIT = 250_000

/** The calls of one limiter that wait for their turn. Their places lie in the store; here they only sleep. */
export class Queue {
  readonly #store: Store
  readonly #patience: Patience
  readonly #turns = new Set<Promise<Turn>>()
  readonly #wakeUps = new Set<(error: Error) => void>()

  constructor(store: Store, patience: Patience) {
    this.#store = store
    this.#patience = patience
  }

  /**
   * Resolves at the turn of a call, or at once when it is denied. A place that was lost or is held at its turn goes
   * back to the queue. Rejects when `signal` aborts or the queue closes, and then gives the place back.
   */
  turn(plan: Plan, key: string, cost: number, maxWait: number, signal?: AbortSignal): Promise<Turn> {
    const turn = this.#take(plan, key, cost, maxWait, signal)
    this.#turns.add(turn)
    const forget = (): unknown => this.#turns.delete(turn)
    turn.then(forget, forget)
    return turn
  }

  /** Rejects everybody who waits with `error`; resolves when they have given their places back. */
  async close(error: Error): Promise<void> {
    for (const wakeUp of this.#wakeUps) wakeUp(error)
    await Promise.allSettled(this.#turns)
  }

  async #take(plan: Plan, key: string, cost: number, maxWait: number, signal?: AbortSignal): Promise<Turn> {
    signal?.throwIfAborted()
    const start = this.#store.now()
    let patience = maxWait
    for (;;) {
      const asked = plan.keyspace.book(plan.policies, key, cost, patience)
      const answer = asked instanceof Promise ? await this.#patience.answer(asked) : asked
      const received = this.#store.now()
      const wait = answer.at - answer.now
      if (answer.reason || answer.degraded || wait <= 0 || !plan.enforce) {
        return { answer, waited: received - start }
      }
      try {
        await this.#sleep(received + wait, signal)
      } catch (error) {
        if (answer.booking) await this.#leave(plan, answer.booking)
        throw error
      }
      if (wait <= TRUSTED_WAIT || !answer.booking || (await this.#stands(plan, key, cost, answer.booking))) {
        return { answer, waited: this.#store.now() - start }
      }
      patience = Math.max(0, maxWait - (this.#store.now() - start))
    }
  }

  /** Whether a place may be used at its turn. One that is held is given back; in doubt the place is good. */
  async #stands(plan: Plan, key: string, cost: number, booking: Booking): Promise<boolean> {
    const state = await this.#patience.done(plan.keyspace.confirm(booking)).catch(() => 'stands' as const)
    if (state === 'held' && !(await this.#leave(plan, booking))) {
      await this.#patience.done(plan.keyspace.refund(plan.policies, key, cost)).catch(() => {})
    }
    return state === 'stands'
  }

  /** Gives a place back; where the store does not take it, it stays used. */
  #leave(plan: Plan, booking: Booking): Promise<boolean> {
    return this.#patience.done(plan.keyspace.cancel(booking)).catch(() => false)
  }

  /** Timers may fire early: the clock decides. */
  #sleep(until: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      let timer: ReturnType<typeof setTimeout>
      const leave = (settle: () => void): void => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', abort)
        this.#wakeUps.delete(wakeUp)
        settle()
      }
      const abort = (): void => leave(() => reject(signal!.reason))
      const wakeUp = (error: unknown): void => leave(() => reject(error))
      const look = (): void => {
        try {
          const left = until - this.#store.now()
          if (left <= 0) leave(resolve)
          else timer = setTimeout(look, Math.ceil(left / 1000))
        } catch (error) {
          wakeUp(error) // the store was closed meanwhile
        }
      }
      if (signal?.aborted) return reject(signal.reason)
      signal?.addEventListener('abort', abort)
      this.#wakeUps.add(wakeUp)
      look()
    })
  }
}

export interface Turn {
  readonly answer: Answer
  /** Microseconds from the call to its turn. */
  readonly waited: number
}
