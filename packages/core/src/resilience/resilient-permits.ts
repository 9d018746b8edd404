import type { Permits, PermitStep, TicketState, TicketStates } from '../stores/permits.js'
import type { Store } from '../stores/store.js'
import { Deadline } from './deadline.js'
import { notAsked } from './failure.js'
import { sharedStateOf } from './shared-store-state.js'
import type { StoreChannel } from './store-channel.js'

export interface ResilientPermitsOptions {
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
export function resilientPermits(store: Store, options: ResilientPermitsOptions): Permits {
  const permits = store.permits!(options.name, options.leaseMs)
  return store.local ? permits : new ResilientPermits(permits, sharedStateOf(store).channel, options)
}

class ResilientPermits implements Permits {
  readonly #deadline: Deadline

  constructor(
    readonly permits: Permits,
    readonly channel: StoreChannel,
    readonly options: ResilientPermitsOptions,
  ) {
    this.#deadline = new Deadline(options.deadlineMs, channel)
  }

  /** @throws {StoreError} STORE_TIMEOUT after the deadline, CLOSED, or what the store rejects with. */
  async ask(
    step: PermitStep,
    key: string,
    tickets: readonly number[],
    limit: number,
  ): Promise<readonly TicketState[]> {
    const refusal = this.channel.refusal()
    if (!refusal) return this.channel.send(() => this.permits.ask(step, key, tickets, limit), this.#deadline)
    this.channel.probeIfOpen(() => this.#probe(key, limit), this.#deadline)
    throw notAsked(refusal)
  }

  listen(granted: (ticket: number) => void): void {
    this.permits.listen(granted)
  }

  /** From here on no call keeps the process alive. */
  close(): void {
    this.#deadline.close()
    this.permits.close()
  }

  /** Tests whether the store is back. If it has lost its data, permits that are held are restored before any is granted. */
  #probe(key: string, limit: number): TicketStates {
    const held = this.options.held(key).slice(0, MOST_TICKETS)
    return this.permits.ask(held.length > 0 ? 'renew' : 'release', key, held, limit)
  }
}

/** Most tickets of one call, because a script blocks all other clients. */
export const MOST_TICKETS = 100
