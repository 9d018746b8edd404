import type { MaybePromise, Permits, Store, TicketState } from '../stores/store.js'
import { backingOf } from './backing.js'
import { Deadline } from './deadline.js'
import type { Line } from './line.js'
import { notAsked } from './outage.js'

export interface GuardedPermitsOptions {
  readonly name: string
  /** How long a permit stays taken whose holder does not renew it. */
  readonly leaseMs: number
  /** The longest that the store may take to answer. */
  readonly deadlineMs: number
  /** Tickets of this process that hold a permit of `key`. */
  readonly held: (key: string) => readonly number[]
}

/**
 * The permits of one semaphore: those of a store of this process as they are; of any other so that a call settles within
 * the deadline. While such a store is known not to answer, or has too much to answer, it is not asked.
 */
export function guardedPermits(store: Store, options: GuardedPermitsOptions): Permits {
  const permits = store.permits!(options.name, options.leaseMs)
  return store.local ? permits : new GuardedPermits(permits, backingOf(store).line, options)
}

class GuardedPermits implements Permits {
  readonly #permits: Permits
  readonly #line: Line
  readonly #deadline: Deadline
  readonly #held: (key: string) => readonly number[]

  constructor(permits: Permits, line: Line, { deadlineMs, held }: GuardedPermitsOptions) {
    this.#permits = permits
    this.#line = line
    this.#deadline = new Deadline(deadlineMs, line)
    this.#held = held
  }

  take(key: string, ticket: number, limit: number, waits: boolean): Promise<boolean> {
    return this.#send(key, limit, () => this.#permits.take(key, ticket, limit, waits))
  }

  poll(key: string, tickets: readonly number[], limit: number): Promise<readonly TicketState[]> {
    return this.#send(key, limit, () => this.#permits.poll(key, tickets, limit))
  }

  renew(key: string, tickets: readonly number[], limit: number): Promise<readonly TicketState[]> {
    return this.#send(key, limit, () => this.#permits.renew(key, tickets, limit))
  }

  release(key: string, tickets: readonly number[], limit: number): Promise<void> {
    return this.#send(key, limit, () => this.#permits.release(key, tickets, limit))
  }

  listen(granted: (ticket: number) => void): void {
    this.#permits.listen(granted)
  }

  /** From here on no call keeps the process alive. */
  close(): void {
    this.#deadline.close()
    this.#permits.close()
  }

  /** @throws {StoreError} STORE_TIMEOUT after the deadline, CLOSED, or what the store rejects with. */
  async #send<T>(key: string, limit: number, call: () => MaybePromise<T>): Promise<T> {
    const refusal = this.#line.refusal()
    if (!refusal) return this.#line.send(call, this.#deadline)
    this.#line.probe(() => this.#probe(key, limit), this.#deadline)
    throw notAsked(refusal)
  }

  /** Sees whether the store is back. Where it has lost its data, it learns of permits that are held before it grants any. */
  #probe(key: string, limit: number): MaybePromise<unknown> {
    const held = this.#held(key).slice(0, MOST_TICKETS)
    return held.length > 0 ? this.#permits.renew(key, held, limit) : this.#permits.release(key, [], limit)
  }
}

/** In one call: a script holds up all other clients. */
export const MOST_TICKETS = 100
