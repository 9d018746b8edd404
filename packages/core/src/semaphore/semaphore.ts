import { expectedButGot, InputError, PolicyError } from '../values/errors.js'
import { closedError } from '../values/closing.js'
import { type CheckedOptions, REPORTS } from '../limiter/limiter-options.js'
import { storedKey } from '../values/key.js'
import { memoryStore } from '../stores/memory/index.js'
import { permitsBeside } from '../stores/memory/permit-queues.js'
import type { Permits } from '../stores/permits.js'
import type { Store } from '../stores/store.js'
import { Listeners, type ListenOptions, warningOnce } from '../values/listeners.js'
import { KeyLimits, type LimitChange } from './adaptive-limit.js'
import { Permit } from '../values/permit.js'
import { Renewal } from './renewal.js'
import { type PermitWait, SEMAPHORE_EVENTS, type SemaphoreEvents } from './semaphore-events.js'
import { permitLimit, readAcquireOptions, readSemaphoreOptions } from './semaphore-options.js'
import type { SemaphoreAcquireOptions, SemaphoreOptions } from './semaphore-options.js'
import { readOption } from '../values/options.js'
import { inThisContext } from '../values/promises.js'
import { Waiters } from './waiters.js'
import { nowMs } from '../values/clock.js'

/**
 * Bounds how many calls run at once, over all processes that share the store. Calls are served in the order in which they
 * came. `await using` runs on Node 24 as it stands; TypeScript 5.2 and esbuild compile it for older ones. Without it, call
 * `permit.release()` in a `finally`.
 * @example
 * const semaphore = createSemaphore({ limit: 5 })
 * await using permit = await semaphore.acquire('reports', { maxWait: '10s' })
 * if (!permit.allowed) throw new Error('too many reports at once')
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
  readonly #listeners: Listeners<SemaphoreEvents>
  #limits: KeyLimits<boolean>
  #inUse = 0
  #closed = false

  /**
   * Checks the options and makes the parts: `#permits` asks the store, behind a guard (a deadline) if the store is not in this process;
   * `#renewal` renews permits while they are held, which a store in this process does not need; `#waiters` are the calls that wait.
   * `#limits` has the limit of each key: a number, or one that adapts to the calls. `#listeners` hear of events, such as a permit that
   * the store has lost. Without a store a memory store is made, and closed with the semaphore.
   */
  constructor(options: SemaphoreOptions) {
    const settings = readSemaphoreOptions(options)
    const { name = 'default', limit, lease: leaseMs, store, deadline: deadlineMs, onLost } = settings
    this.name = name
    this.#listeners = new Listeners(SEMAPHORE_EVENTS, warningOnce(`semaphore '${name}'`))
    this.#limits = new KeyLimits(typeof limit === 'number' ? { initial: limit } : limit)
    if (onLost) this.#listeners.on('lost', (event) => onLost(event.key))
    this.#ownsStore = store === undefined
    this.#store = store ?? memoryStore()
    if (!this.#store.local && typeof this.#store.permits !== 'function') {
      throw expectedButGot(PolicyError, 'INVALID_OPTION', 'store must be one that keeps permits', store)
    }
    const held = (key: string): readonly number[] => this.#renewal.held(key)
    this.#permits = this.#store.local
      ? permitsBeside(this.#store, name)
      : this.#store.guard!.permits(this.#store, { name, leaseMs, deadlineMs, held })
    const limitNow = (key: string): number => this.#limits.of(key)
    this.#renewal = new Renewal(this.#permits, this.#store.local ? undefined : leaseMs, limitNow)
    this.#waiters = new Waiters(this.#permits, this.#renewal, limitNow, this.#store)
  }

  /**
   * Waits for a permit, in the order of the calls. Resolves with a permit that is not `allowed` if none was free within
   * `maxWait`. Each key has `limit` permits of its own; without a key, that of the empty text is used.
   * @throws {InputError} INVALID_KEY, INVALID_DURATION; the signal's reason when it aborts; StoreError when the store
   * did not once answer the call within `maxWait`, or CLOSED.
   */
  async acquire(key = '', options: SemaphoreAcquireOptions = {}): Promise<Permit> {
    if (this.#closed) throw closedError('semaphore')
    refuseOptionsAsKey(key)
    const stored = storedKey(key)
    const { maxWait, signal } = readAcquireOptions(options)
    const { [REPORTS]: reports } = options as Partial<CheckedOptions>
    signal?.throwIfAborted()
    const start = this.#store.now()
    let heldSince: number | undefined
    // Reports the end of the permit once: its release or its loss, whichever is first. Before it is granted nothing is reported.
    const reportEnd = (type: 'released' | 'lost'): void => {
      if (heldSince === undefined) return
      const heldMs = Math.ceil(nowMs() - heldSince)
      heldSince = undefined
      this.#inUse--
      this.#listeners.emit(type, { type, semaphore: this.name, key, heldMs })
    }
    // A loss is found in the context of another call, and its listeners are to be called in that of this one.
    const runInThisContext = this.#listeners.heard.lost && inThisContext()
    const onLost = (): void =>
      runInThisContext ? runInThisContext(() => reportEnd('lost')) : reportEnd('lost')
    const { ticket, waiter } = await this.#waiters.take(stored, maxWait, onLost, signal)
    const waitMs = Math.max(0, Math.ceil((this.#store.now() - start) / 1000))
    const decidedBy = this.#store.local ? 'memory' : 'store'
    const wait = { semaphore: this.name, key, waitMs, decidedBy, storeMs: waiter.storeMs } as const
    if (ticket === undefined) {
      this.#reportWait('denied', wait, reports)
      return new Permit(waitMs, undefined)
    }
    const grantedAt = (heldSince = nowMs())
    this.#inUse++
    if (waiter.hasWaited) this.#reportWait('waited', wait, reports)
    this.#reportWait('granted', wait, reports)
    return new Permit(waitMs, (outcome, tookMs = nowMs() - grantedAt) => {
      const change = this.#limits.ended(stored, outcome, tookMs, waiter.hasWaited)
      // Before the permit is released, so that waiting calls are served under the new limit.
      if (change) this.#followChange(key, change)
      reportEnd('released')
      return this.#renewal.release(stored, ticket)
    })
  }

  /** Reports how a call has waited to the listeners: now, or if there are `reports`, when its caller makes those. */
  #reportWait<E extends 'denied' | 'waited' | 'granted'>(
    type: E,
    wait: PermitWait,
    reports: CheckedOptions[typeof REPORTS],
  ): void {
    if (!this.#listeners.heard[type]) return
    const emit = (): void => this.#listeners.emit(type, { type, ...wait } as SemaphoreEvents[E])
    if (reports) reports.keep(emit)
    else emit()
  }

  /** Has the waiting calls ask again under the changed limit of a key, and reports the change. */
  #followChange(key: string, change: LimitChange): void {
    this.#waiters.pollAll().catch(() => {})
    this.#listeners.emit('adapted', { type: 'adapted', semaphore: this.name, key, ...change })
  }

  /** Permits that calls of this process hold, over all keys. */
  get inUse(): number {
    return this.#inUse
  }

  /** Calls of this process that wait for a permit. */
  get waiting(): number {
    return this.#waiters.size
  }

  /** Whether `close` was called. */
  get isClosed(): boolean {
    return this.#closed
  }

  /**
   * Adds a listener. The first one that throws or rejects is a warning of the process, LISTENER_FAILED. Returns a function
   * that removes it.
   */
  on<E extends keyof SemaphoreEvents>(
    event: E,
    listener: (event: SemaphoreEvents[E]) => void,
    options?: ListenOptions,
  ): () => void {
    return this.#listeners.on(event, listener, options)
  }

  /** Most permits held at once, for each key. An adaptive limit is that of keys whose calls have not ended. */
  get limit(): number {
    return this.#limits.given.initial
  }

  /** Whether its limit follows what becomes of the calls. */
  get isAdaptive(): boolean {
    return this.#limits.given.follow !== undefined
  }

  /** Most permits of a key that are held at once. */
  limitOf(key = ''): number {
    return this.#limits.of(storedKey(key))
  }

  /**
   * Sets another limit, 1 to 1,000,000, also for the calls that wait. Permits above a lower limit stay held until they are
   * released. Each process that shares the permits sets its own limit. An adaptive limit ends.
   * @throws {PolicyError} INVALID_LIMIT.
   */
  resize(limit: number): void {
    this.#limits = new KeyLimits({ initial: readOption(permitLimit, limit, 'limit', { what: 'resize' }) })
    this.#waiters.pollAll().catch(() => {})
  }

  /** Rejects the calls that wait and all later ones with StoreError CLOSED. Permits stay held until they are released. */
  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    await this.#waiters.close(closedError('semaphore'))
    this.#permits.close()
    if (this.#ownsStore) await this.#store.close()
  }
}

/**
 * Refuses an object in place of the key of `acquire`: most likely its options, with the key left out. `storedKey` refuses all
 * other keys that are no strings.
 * @throws {InputError} INVALID_KEY.
 */
function refuseOptionsAsKey(key: unknown): void {
  if (typeof key !== 'object' || key === null) return
  const what = 'key must be a string, before the options: write acquire(key, { maxWait })'
  throw expectedButGot(InputError, 'INVALID_KEY', what, key)
}
