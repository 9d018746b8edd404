import { MOST_TICKETS, type Permits, RENEW_US } from '../stores/permits.js'
import type { StoreError } from '../values/errors.js'
import { nowMs, setTimer, type TimerHandle } from '../values/clock.js'

/**
 * The permits that one semaphore of this process holds. They are renewed every 500 ms (`RENEW_US`), or every third of the
 * lease if that is shorter. A release that failed is repeated until the lease ends.
 */
export class Renewal {
  /** The tickets by key, each with the callback for the loss of its permit. */
  readonly #held = new Map<string, Map<number, () => void>>()
  /** Tickets by key whose release failed, each with the latest end of its lease. */
  readonly #releasing = new Map<string, Map<number, number>>()
  #timer: TimerHandle | undefined

  /**
   * Begins without permits. `permits` is the semaphore's access to its store. The store keeps a permit without renewal for `leaseMs`
   * milliseconds; undefined for a store in this process, which needs no renewal. `limit` returns the limit of a key at the moment.
   */
  constructor(
    private readonly permits: Permits,
    private readonly leaseMs: number | undefined,
    private readonly limit: (key: string) => number,
  ) {}

  /** The tickets that hold a permit of `key`. */
  held(key: string): readonly number[] {
    return [...(this.#held.get(key)?.keys() ?? [])]
  }

  /** The tickets of `key` whose release failed and is repeated. */
  releasing(key: string): readonly number[] {
    return [...(this.#releasing.get(key)?.keys() ?? [])]
  }

  /**
   * Renews the permit that a ticket (a call, by number) of `key` holds, from now on until `release`. Calls `lost`, which must not
   * throw, if the store does not know the permit any more.
   */
  hold(key: string, ticket: number, lost: () => void): void {
    const held = this.#held.get(key) ?? new Map<number, () => void>()
    this.#held.set(key, held.set(ticket, lost))
    this.#schedule(this.#renewMs)
  }

  /**
   * Releases the permit of a ticket (a call of `key`, by number), or removes the ticket from the store's queue if it still waits.
   * Never rejects: if the store is not reached, the release is retried until the lease has ended, which frees the permit too.
   */
  async release(key: string, ticket: number): Promise<void> {
    remove(this.#held, key, ticket)
    try {
      await this.permits.ask('release', key, [ticket], this.limit(key))
    } catch {
      if (this.leaseMs === undefined) return
      const releasing = this.#releasing.get(key) ?? new Map<number, number>()
      this.#releasing.set(key, releasing.set(ticket, nowMs() + this.leaseMs))
      this.#schedule(RETRY_MS)
    }
  }

  /** Milliseconds between two renewals: a third of the lease, at most 500. */
  get #renewMs(): number {
    return Math.min((this.leaseMs ?? 0) / 3, RENEW_US / 1000)
  }

  /**
   * Sets the timer that renews permits and retries releases, for `ms` milliseconds from now. Does nothing if it is set, or if the
   * store is in this process and needs neither. The timer does not keep the process alive.
   */
  #schedule(ms: number): void {
    if (this.#timer !== undefined || this.leaseMs === undefined) return
    this.#timer = setTimer(() => void this.#run().catch(() => {}), ms)
    this.#timer.unref?.()
  }

  /**
   * Runs when the timer fires: renews all permits that are held and retries the releases that failed, each key by itself. Sets the
   * timer again while there are any, unless the store is closed: for soon if the store was not reached, as leases go on running out.
   */
  async #run(): Promise<void> {
    const keys = new Set([...this.#held.keys(), ...this.#releasing.keys()])
    const results = await Promise.all([...keys].map((key) => this.#runFor(key)))
    this.#timer = undefined
    if (this.#held.size + this.#releasing.size === 0 || results.includes('closed')) return
    this.#schedule(results.includes('failed') ? RETRY_MS : this.#renewMs)
  }

  /** Renews the permits of one key and retries its failed releases. Resolves to how that went, 'closed' if the store is closed. */
  async #runFor(key: string): Promise<'done' | 'failed' | 'closed'> {
    this.#dropExpired(key)
    try {
      await this.#renewHeld(key)
      await this.#repeatReleases(key)
      return 'done'
    } catch (error) {
      return (error as Partial<StoreError>).code === 'CLOSED' ? 'closed' : 'failed'
    }
  }

  /**
   * Renews the permits of a key, up to 100 in one call to the store. If the store neither knows a permit nor has one free, the
   * permit is lost: its ticket is no longer renewed, and the callback of its holder is called. The state of a ticket that was
   * released during the call is ignored.
   */
  async #renewHeld(key: string): Promise<void> {
    for (const tickets of inParts(this.held(key))) {
      // Renewing a ticket that was released meanwhile would take its permit again.
      const stillHeld = tickets.filter((ticket) => this.#held.get(key)?.has(ticket))
      const states = await this.permits.ask('renew', key, stillHeld, this.limit(key))
      for (const [i, ticket] of stillHeld.entries()) {
        const lost = this.#held.get(key)?.get(ticket)
        if (states[i] !== 'unknown' || !lost) continue
        remove(this.#held, key, ticket)
        lost()
      }
    }
  }

  /** Retries the releases of a key that have failed, up to 100 in one call to the store. Rejects if one fails again. */
  async #repeatReleases(key: string): Promise<void> {
    for (const tickets of inParts(this.releasing(key))) {
      await this.permits.ask('release', key, tickets, this.limit(key))
      for (const ticket of tickets) remove(this.#releasing, key, ticket)
    }
  }

  /** Forgets the failed releases of a key whose permits need none any more, as their leases have ended meanwhile. */
  #dropExpired(key: string): void {
    const now = nowMs()
    for (const [ticket, until] of this.#releasing.get(key) ?? []) {
      if (until < now) remove(this.#releasing, key, ticket)
    }
  }
}

const RETRY_MS = 100

/** Splits a list of tickets into lists of at most 100 (MOST_TICKETS), in order: so many one call to the store may name. */
function inParts(tickets: readonly number[]): readonly (readonly number[])[] {
  const parts = Math.ceil(tickets.length / MOST_TICKETS)
  return Array.from({ length: parts }, (_, i) => tickets.slice(i * MOST_TICKETS, (i + 1) * MOST_TICKETS))
}

/** Removes a ticket from those of its key, and with the last ticket the key; does nothing if the ticket is not there. */
function remove<T>(byKey: Map<string, Map<number, T>>, key: string, ticket: number): void {
  const tickets = byKey.get(key)
  tickets?.delete(ticket)
  if (tickets?.size === 0) byKey.delete(key)
}
