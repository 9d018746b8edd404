import { type Duration, parseDuration } from '../values/duration.js'
import { expected, InputError, PolicyError, StoreError } from '../values/errors.js'
import { storedKey } from '../values/key.js'
import { checkStore } from '../limiter/limiter-options.js'
import { printableName } from '../algorithms/contract/policy.js'
import { guardedPermits } from '../resilience/guarded-permits.js'
import { memoryStore } from '../stores/memory/index.js'
import type { Permits, Store } from '../stores/store.js'
import { Permit } from './permit.js'
import { Renewal } from './renewal.js'
import { Waiters } from './waiters.js'

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
  readonly #permits: Permits
  readonly #renewal: Renewal
  readonly #waiters: Waiters
  readonly #onLost: ((key: string) => void) | undefined
  #limit: number
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
    if (typeof this.#store.permits !== 'function') {
      throw expected(PolicyError, 'INVALID_OPTION', 'store must be one that keeps permits', store)
    }
    const held = (key: string): readonly number[] => this.#renewal.held(key)
    const permits = guardedPermits(this.#store, { name: this.name, leaseMs, deadlineMs, held })
    const limitNow = (): number => this.#limit
    const isElsewhere = this.#store.local !== true
    this.#permits = permits
    this.#renewal = new Renewal({ permits, leaseMs: isElsewhere ? leaseMs : undefined, limit: limitNow })
    this.#waiters = new Waiters({ permits, renewal: this.#renewal, limit: limitNow, polls: isElsewhere })
  }

  /**
   * Waits for a place, in the order of the calls. Not allowed, as a value, when none was free within `maxWait`. Each key
   * has `limit` places of its own; default ''.
   * @throws {InputError} INVALID_KEY, INVALID_DURATION; the signal's reason when it aborts; StoreError when the store
   * could not be reached within `maxWait`, or CLOSED.
   */
  async acquire(key = '', { maxWait = '30s', signal }: SemaphoreAcquireOptions = {}): Promise<Permit> {
    if (this.#closed) throw closedError()
    checkKey(key)
    const stored = storedKey(key)
    const patience = parseDuration(maxWait, 'maxWait', { least: 0, most: LONGEST_WAIT_MS, error: InputError })
    signal?.throwIfAborted()
    const start = this.#store.now()
    const lost = (): void => this.#onLost?.(key)
    const ticket = await this.#waiters.take(stored, patience, lost, signal)
    const waitMs = Math.max(0, Math.ceil((this.#store.now() - start) / 1000))
    return new Permit(waitMs, ticket === undefined ? undefined : () => this.#renewal.release(stored, ticket))
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
    void this.#waiters.pollAll()
  }

  /** Rejects those who wait and all later calls. Who holds a place keeps it until its release. */
  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    await this.#waiters.close(closedError())
    this.#renewal.close()
    this.#permits.close()
    if (this.#ownsStore) await this.#store.close()
  }
}

const MOST_PLACES = 1_000_000
const LONGEST_WAIT_MS = 86_400_000

function checkLimit(limit: number): number {
  if (Number.isInteger(limit) && limit >= 1 && limit <= MOST_PLACES) return limit
  throw expected(PolicyError, 'INVALID_LIMIT', `limit must be a whole number from 1 to ${MOST_PLACES}`, limit)
}

/** Options in the place of the key are a likely mistake: the key is the first argument, as in `limiter.acquire`. */
function checkKey(key: unknown): void {
  if (typeof key !== 'object' || key === null) return
  const what = 'key must be a string, before the options: write acquire(key, { maxWait })'
  throw expected(InputError, 'INVALID_KEY', what, key)
}

function closedError(): StoreError {
  return new StoreError('CLOSED', 'the semaphore is closed')
}
