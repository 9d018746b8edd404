import { type Duration, parseDuration } from './duration.js'
import { expected, InputError, PolicyError, StoreError } from './errors.js'
import { storedKey } from './key.js'
import { checkStore } from './limiter-options.js'
import { printableName } from './policy.js'
import { backingOf } from './resilience/backing.js'
import { Permit } from './semaphore/permit.js'
import type { Places } from './semaphore/places.js'
import { StoreCalls } from './semaphore/store-calls.js'
import { memoryStore } from './stores/memory.js'
import type { Store } from './stores/store.js'

export interface SemaphoreOptions {
  /**
   * Semaphores of one name in one store share their places: 1 to 64 characters of printable ASCII. Required with a
   * `store`; default 'default'.
   */
  readonly name?: string
  /** Most that hold a place at once, for each key: a whole number from 1 to 1,000,000. */
  readonly limit: number
  /**
   * How long the place of a holder that died stays taken, 1 s to 1 hour; default 30 s. While a holder lives its lease
   * is renewed. A memory store needs none.
   */
  readonly lease?: Duration
  /** Default: a `memoryStore()` of its own, which `close()` closes too. */
  readonly store?: Store
  /** The longest the store may take to answer a call, 1 ms to 1 minute; default 50 ms. */
  readonly deadline?: Duration
  /**
   * Hears of a place that was lost while it was held: the store forgot it, and others took all places before it was
   * renewed.
   */
  readonly onLost?: (key: string) => void
}

export interface SemaphoreAcquireOptions {
  /** Longest to wait for a place: up to 1 day, default 30 s; 0 takes one that is free or none. */
  readonly maxWait?: Duration
  /** Leaves the line and rejects with the signal's reason. */
  readonly signal?: AbortSignal
  /** Each key has `limit` places of its own. Default ''. */
  readonly key?: string
}

/**
 * Bounds how many run at once, over all processes that share the store. Who comes first is served first.
 * @throws {PolicyError} when an option cannot work; see docs/errors.md for the codes.
 */
export function createSemaphore(options: SemaphoreOptions): Semaphore {
  return new Semaphore(options)
}

/** Made by `createSemaphore`. */
export class Semaphore {
  readonly name: string
  readonly #store: Store
  readonly #ownsStore: boolean
  readonly #places: Places
  readonly #onLost: ((key: string) => void) | undefined
  readonly #waiting = new Map<number, Waiter>()
  readonly #held = new Map<number, string>()
  #limit: number
  #tickets = 0
  #closed = false

  constructor({ name, limit, lease = '30s', store, deadline = '50ms', onLost }: SemaphoreOptions) {
    if (store !== undefined && name === undefined) {
      throw new PolicyError(
        'NAME_REQUIRED',
        'a semaphore with a store needs a name: others may share the store',
      )
    }
    if (onLost !== undefined && typeof onLost !== 'function') {
      throw expected(PolicyError, 'INVALID_OPTION', 'onLost must be a function', onLost)
    }
    this.name = printableName(name ?? 'default', 'semaphore name')
    this.#limit = checkLimit(limit)
    this.#onLost = onLost
    const leaseMs = parseDuration(lease, 'lease', { least: 1000, most: 3_600_000, error: PolicyError })
    const deadlineMs = parseDuration(deadline, 'deadline', { most: 60_000, error: PolicyError })
    if (store !== undefined) checkStore(store)
    this.#ownsStore = store === undefined
    this.#store = store ?? memoryStore()
    if (typeof this.#store.places !== 'function') {
      throw expected(PolicyError, 'INVALID_OPTION', 'store must be one that keeps places', store)
    }
    this.#places = this.#store.places({
      name: this.name,
      leaseMs,
      calls: new StoreCalls(backingOf(this.#store).line, deadlineMs),
      report: (ticket, change) => this.#hear(ticket, change),
    })
  }

  /**
   * Waits for a place, in the order of the calls. Not allowed, as a value, when none was free within `maxWait`.
   * @throws {InputError} INVALID_KEY, INVALID_DURATION; the signal's reason when it aborts; StoreError when the store
   * could not be reached within `maxWait`, or CLOSED.
   */
  async acquire({ maxWait = '30s', signal, key = '' }: SemaphoreAcquireOptions = {}): Promise<Permit> {
    if (this.#closed) throw closedError()
    const patience = parseDuration(maxWait, 'maxWait', { least: 0, most: LONGEST_WAIT_MS, error: InputError })
    const stored = storedKey(key)
    signal?.throwIfAborted()
    const start = this.#store.now()
    const ticket = ++this.#tickets
    const allowed = await this.#place(ticket, stored, patience, signal)
    const waitMs = Math.max(0, Math.ceil((this.#store.now() - start) / 1000))
    if (!allowed) return new Permit(waitMs, undefined)
    this.#held.set(ticket, key)
    return new Permit(waitMs, () => this.#giveBack(ticket, stored))
  }

  /** Most that hold a place at once, for each key. */
  get limit(): number {
    return this.#limit
  }

  /**
   * Another limit from now on, also for those who wait: 1 to 1,000,000. Places above a lower one stay held until they are
   * released. Each process that shares the places sets its own.
   * @throws {PolicyError} INVALID_LIMIT.
   */
  resize(limit: number): void {
    this.#limit = checkLimit(limit)
    this.#places.resize(limit)
  }

  /** Rejects those who wait and all later calls. Who holds a place keeps it until its release. */
  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    const leaving = [...this.#waiting.values()].map(({ leave }) => leave(closedError()))
    await Promise.all(leaving)
    this.#places.close()
    if (this.#ownsStore) await this.#store.close()
  }

  #place(ticket: number, key: string, patience: number, signal?: AbortSignal): Promise<boolean> {
    return new Promise((resolve, reject) => {
      const settle = (how: () => void): void => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', abort)
        this.#waiting.delete(ticket)
        how()
      }
      const leave = (error?: unknown): Promise<void> => {
        settle(error === undefined ? () => resolve(false) : () => reject(error))
        return this.#giveBack(ticket, key)
      }
      const abort = (): void => void leave(signal!.reason)
      const expire = (): void => void leave(this.#places.failure)
      const timer = patience > 0 ? setTimeout(expire, patience) : undefined
      signal?.addEventListener('abort', abort)
      this.#waiting.set(ticket, { granted: () => settle(() => resolve(true)), leave })
      const answered = (taken: boolean): void => {
        if (!this.#waiting.has(ticket)) return
        if (taken) settle(() => resolve(true))
        else if (patience === 0) settle(() => resolve(false))
      }
      const asked = this.#places.take(key, ticket, this.#limit, patience > 0)
      if (asked instanceof Promise)
        asked.then(answered, (error: unknown) => this.#waiting.get(ticket)?.leave(error))
      else answered(asked)
    })
  }

  async #giveBack(ticket: number, key: string): Promise<void> {
    this.#held.delete(ticket)
    try {
      await this.#places.leave(key, ticket)
    } catch {
      // It is told again when the store is back, and ends with its lease at the latest.
    }
  }

  #hear(ticket: number, change: 'granted' | 'lost'): void {
    if (change === 'granted') return this.#waiting.get(ticket)?.granted()
    const key = this.#held.get(ticket)
    if (key !== undefined) this.#onLost?.(key)
  }
}

interface Waiter {
  granted(): void
  /** Leaves the line: rejects with `error`, or is denied without one. */
  readonly leave: (error?: unknown) => Promise<void>
}

const MOST_PLACES = 1_000_000
const LONGEST_WAIT_MS = 86_400_000

function checkLimit(limit: number): number {
  if (Number.isInteger(limit) && limit >= 1 && limit <= MOST_PLACES) return limit
  throw expected(PolicyError, 'INVALID_LIMIT', `limit must be a whole number from 1 to ${MOST_PLACES}`, limit)
}

function closedError(): StoreError {
  return new StoreError('CLOSED', 'the semaphore is closed')
}
