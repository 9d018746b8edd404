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
   * `leaseMs` is how long the store keeps a permit without renewal; undefined for a store in this process, which needs
   * none. `limit` is the semaphore's at the moment.
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

  /** Renews the ticket's permit from now on. Calls `lost`, which must not throw, if the store has lost it. */
  hold(key: string, ticket: number, lost: () => void): void {
    const held = this.#held.get(key) ?? new Map<number, () => void>()
    this.#held.set(key, held.set(ticket, lost))
    this.#schedule(this.#renewMs)
  }

  /**
   * Releases the ticket's permit, or takes the ticket out of the queue. Never rejects: if the store is not reached, the
   * release is repeated until the lease has ended, which frees the permit too.
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

  /** Sets the timer that renews permits and repeats releases, unless it is set. It does not keep the process alive. */
  #schedule(ms: number): void {
    if (this.#timer !== undefined || this.leaseMs === undefined) return
    this.#timer = setTimer(() => void this.#run(), ms)
    this.#timer.unref?.()
  }

  /** Renews all permits and repeats the releases that failed, key by key, and sets the next timer while there are any. */
  async #run(): Promise<void> {
    const keys = new Set([...this.#held.keys(), ...this.#releasing.keys()])
    const results = await Promise.all([...keys].map((key) => this.#runFor(key)))
    this.#timer = undefined
    if (this.#held.size + this.#releasing.size === 0 || results.includes('closed')) return
    // The lease goes on running out, so a renewal that failed is repeated soon.
    this.#schedule(results.includes('failed') ? RETRY_MS : this.#renewMs)
  }

  /** Renews and repeats for one key. Returns whether the store carried it out; 'closed' means that it never will. */
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

  /** Renews the permits of a key. One that the store does not know any more has been lost, and its holder is called. */
  async #renewHeld(key: string): Promise<void> {
    for (const part of inParts(this.held(key))) {
      // Renewing a ticket that was released meanwhile would take its permit again.
      const held = part.filter((ticket) => this.#held.get(key)?.has(ticket))
      const states = await this.permits.ask('renew', key, held, this.limit(key))
      for (const [i, ticket] of held.entries()) {
        const lost = this.#held.get(key)?.get(ticket)
        if (states[i] !== 'unknown' || !lost) continue
        remove(this.#held, key, ticket)
        lost()
      }
    }
  }

  /** Repeats the releases of a key that have failed. */
  async #repeatReleases(key: string): Promise<void> {
    for (const part of inParts(this.releasing(key))) {
      await this.permits.ask('release', key, part, this.limit(key))
      for (const ticket of part) remove(this.#releasing, key, ticket)
    }
  }

  /** Forgets the releases of permits whose lease has ended meanwhile, which has freed them. */
  #dropExpired(key: string): void {
    const now = nowMs()
    for (const [ticket, until] of this.#releasing.get(key) ?? []) {
      if (until < now) remove(this.#releasing, key, ticket)
    }
  }
}

const RETRY_MS = 100

/** Splits a list of tickets into lists that are short enough for one call to the store. */
function inParts(tickets: readonly number[]): readonly (readonly number[])[] {
  const parts = Math.ceil(tickets.length / MOST_TICKETS)
  return Array.from({ length: parts }, (_, i) => tickets.slice(i * MOST_TICKETS, (i + 1) * MOST_TICKETS))
}

/** Removes a ticket from those of its key, and with the last of them the key. */
function remove<T>(byKey: Map<string, Map<number, T>>, key: string, ticket: number): void {
  const tickets = byKey.get(key)
  tickets?.delete(ticket)
  if (tickets?.size === 0) byKey.delete(key)
}
