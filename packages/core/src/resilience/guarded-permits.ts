import type { MaybePromise, Permits, Store, TicketState } from '../stores/store.js'
import { Deadline } from './deadline.js'
import { notAsked } from './failure.js'
import { sharedStateOf } from './shared-store-state.js'
import type { StoreChannel } from './store-channel.js'

export interface GuardedPermitsOptions {
  readonly name: string
  /** How long a permit stays taken if its holder does not renew it. */
  readonly leaseMs: number
  /** The longest that the store may take to answer. */
  readonly deadlineMs: number
  /** The tickets of this process that hold a permit of `key`. */
  readonly held: (key: string) => readonly number[]
}

/**
 * The permits of one semaphore. A store of this process is used as it is; calls to any other settle within the deadline.
 * While such a store does not answer, or has too many calls to answer, it is not asked.
 */
export function guardedPermits(store: Store, options: GuardedPermitsOptions): Permits {
  const permits = store.permits!(options.name, options.leaseMs)
  return store.local ? permits : new GuardedPermits(permits, sharedStateOf(store).channel, options)
}

class GuardedPermits implements Permits {
  readonly #permits: Permits
  readonly #channel: StoreChannel
  readonly #deadline: Deadline
  readonly #held: (key: string) => readonly number[]

  constructor(permits: Permits, channel: StoreChannel, { deadlineMs, held }: GuardedPermitsOptions) {
    this.#permits = permits
    this.#channel = channel
    this.#deadline = new Deadline(deadlineMs, channel)
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
    const refusal = this.#channel.refusal()
    if (!refusal) return this.#channel.send(call, this.#deadline)
    this.#channel.probeIfOpen(() => this.#probe(key, limit), this.#deadline)
    throw notAsked(refusal)
  }

  /** Tests whether the store is back. If it has lost its data, permits that are held are restored before any is granted. */
  #probe(key: string, limit: number): MaybePromise<unknown> {
    const held = this.#held(key).slice(0, MOST_TICKETS)
    return held.length > 0 ? this.#permits.renew(key, held, limit) : this.#permits.release(key, [], limit)
  }
}

/** Most tickets of one call, because a script blocks all other clients. */
export const MOST_TICKETS = 100
