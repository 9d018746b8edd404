import { CONTRACT, CONTRACT_NUMBER, SETTINGS } from '../values/contract.js'
import { checkCost } from '../values/cost.js'
import { Decision } from './decision.js'
import { type Duration, parseDuration } from '../values/duration.js'
import { expected, PolicyError, StoreError } from '../values/errors.js'
import { Events, type LimiterEvents, type Listener } from './events.js'
import { storedKey } from '../values/key.js'
import { type Plan, Plans } from './plan.js'
import type { LeaseOptions } from '../leases/lease-options.js'
import { checkLimiterOptions } from './limiter-options.js'
import { leasedStore } from '../leases/leased-store.js'
import { type Policy, printableName } from '../algorithms/contract/policy.js'
import { memoryStore } from '../stores/memory/index.js'
import { isDenied, type Notice, type Store } from '../stores/store.js'
import { Queue } from './queue.js'
import { guardedStore, type ResilienceOptions } from '../resilience/guarded-store.js'
import { Warnings } from './warnings.js'

export interface LimiterOptions extends ResilienceOptions {
  /**
   * Names keys, headers and metrics: 1 to 64 characters of printable ASCII. Required with a `store`, which other
   * limiters may share; default 'default'.
   */
  readonly name?: string
  /** All must admit a call, and none is charged when one refuses. */
  readonly policies: readonly Policy[]
  /** Default: a `memoryStore()` of its own, which `close()` closes too. A store that is given is closed by its maker. */
  readonly store?: Store
  /**
   * A process books a slice of a hot key's allowance in one call and serves it from memory, no later than `ttl` after
   * it was booked. What the limits promise holds for the calls as they are served. Default: every call asks the store.
   */
  readonly leases?: LeaseOptions
  /** false = shadow mode: decide and count as if enforced, but let everything pass. Default true. */
  readonly enforce?: boolean
}

/** Where a limiter counts and what it does in an outage; neither what it is called nor how much it admits. */
export type LimiterSettings = Omit<LimiterOptions, 'name' | 'policies'>

export interface ShapeOptions {
  /**
   * Policies of this call, for example of the caller's tier. Lists of equal shapes (algorithms, windows, buckets, in
   * order) share what was consumed; another list of shapes is another state.
   */
  readonly policies?: readonly Policy[]
}

export interface CallOptions extends ShapeOptions {
  /** Units that the call takes: a whole number from 0 to 2^31, default 1. 0 only reads. */
  readonly cost?: number
}

export interface AcquireOptions extends CallOptions {
  /** Longest to wait for the turn: up to 1 day, default 30 s. A later turn is denied at once. */
  readonly maxWait?: Duration
  /** Gives the place back and rejects with the signal's reason. */
  readonly signal?: AbortSignal
}

/**
 * Keeps callers under a list of policies.
 * @throws {PolicyError} when an option cannot work; see docs/errors.md for the codes.
 */
export function createLimiter(options: LimiterOptions): Limiter {
  return new Limiter(options)
}

/** Made by `createLimiter`. Every method throws (or rejects with) StoreError CLOSED after `close()`. */
export class Limiter {
  readonly name: string
  readonly #settings: LimiterSettings
  readonly #store: Store
  readonly #ownsStore: boolean
  readonly #events = new Events((event, error) => this.#listenerFailed(event, error))
  readonly #warnings: Warnings
  readonly #plans: Plans
  readonly #plan: Plan
  readonly #queue: Queue
  #closed = false

  constructor(options: LimiterOptions) {
    checkLimiterOptions(options)
    const { name, policies, store, leases, enforce = true } = options
    if (store !== undefined && name === undefined) {
      throw new PolicyError(
        'NAME_REQUIRED',
        'a limiter with a store needs a name: other limiters may share the store',
      )
    }
    if (typeof enforce !== 'boolean') {
      throw expected(PolicyError, 'INVALID_OPTION', 'enforce must be true or false', enforce)
    }
    this.name = printableName(name ?? 'default', 'limiter name')
    this.#settings = withoutNameAndPolicies(options)
    this.#store = leasedStore(guardedStore(store ?? memoryStore(), options), leases)
    this.#ownsStore = this.#store !== store
    this.#warnings = new Warnings(this.#events, this.name)
    this.#plans = new Plans(this.name, enforce, this.#store, (notice) => this.#hear(notice))
    this.#plan = this.#plans.of(policies)
    this.#queue = new Queue(this.#store)
  }

  /** @internal */
  get [CONTRACT](): number {
    return CONTRACT_NUMBER
  }

  /** @internal */
  get [SETTINGS](): LimiterSettings {
    return this.#settings
  }

  /**
   * Charges `cost` under every policy, or changes nothing.
   * @throws {InputError} INVALID_KEY, INVALID_COST. A denial is a value and never thrown.
   */
  consume(key: string, options?: CallOptions): Promise<Decision> {
    try {
      const decision = this.decide(key, options)
      // Not instanceof Promise: this way the compiler learns that it resolves with no thenable, which takes it 50 ns.
      return 'allowed' in decision ? Promise.resolve(decision) : decision
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /** As `consume`, but answers at once when no other process is asked. For adapters and hot paths. */
  decide(key: string, options?: CallOptions): Decision | Promise<Decision> {
    const plan = this.#planOf(options)
    const cost = costOf(options)
    const stored = storedKey(key)
    const answer = plan.keyspace.decide('consume', stored, cost, 0)
    if (answer instanceof Promise) {
      return answer.then((later) => this.#told(key, new Decision(plan, later, key, stored, cost)))
    }
    return this.#told(key, new Decision(plan, answer, key, stored, cost))
  }

  /** What `consume` would decide now. Writes nothing. */
  async peek(key: string, options?: CallOptions): Promise<Decision> {
    const plan = this.#planOf(options)
    const cost = costOf(options)
    const answer = await plan.keyspace.decide('peek', storedKey(key), cost, 0)
    return this.#told(key, new Decision(plan, answer, key, undefined, cost))
  }

  /**
   * Books a place, first come, first served, and resolves when it is its turn. Denied at once, with nothing booked,
   * when the turn is later than `maxWait`.
   * @throws {InputError} INVALID_KEY, INVALID_COST, INVALID_DURATION; the signal's reason when it aborts.
   */
  async acquire(key: string, options: AcquireOptions = {}): Promise<Decision> {
    const plan = this.#planOf(options)
    const cost = costOf(options)
    const stored = storedKey(key)
    const bounds = { least: 0, most: LONGEST_WAIT_MS }
    const maxWait = parseDuration(options.maxWait ?? '30s', 'maxWait', bounds) * 1000
    const { answer, waited, late } = await this.#queue.turn(plan, stored, cost, maxWait, options.signal)
    const at = isDenied(answer) ? answer.now : Math.max(answer.now, answer.at)
    const turn = { at, waitMs: Math.ceil(waited / 1000), lateMs: Math.floor(late / 1000) }
    return this.#told(key, new Decision(plan, answer, key, stored, cost, turn))
  }

  /**
   * Gives `cost` units back (default 1) as of now, never below empty: the newest units of the key, whichever call charged
   * them. So it can free units that others charged; `decision.settle` gives back a decision's own.
   * @throws {InputError} INVALID_KEY, INVALID_COST.
   */
  refund(key: string, options?: CallOptions): Promise<void> {
    return this.#correctBy('refund', key, options)
  }

  /**
   * Charges `cost` units (default 1) now, whether they fit or not; at most twice the capacity is remembered.
   * @throws {InputError} INVALID_KEY, INVALID_COST.
   */
  charge(key: string, options?: CallOptions): Promise<void> {
    return this.#correctBy('charge', key, options)
  }

  /** Forgets the key: what it consumed, its block and its hold. */
  async reset(key: string, options?: ShapeOptions): Promise<void> {
    await this.#planOf(options).keyspace.correct({ kind: 'reset', key: storedKey(key) })
  }

  /** A ban: denies everything for `duration`, or until reset. The latest call wins. */
  async block(key: string, duration: Duration, options?: ShapeOptions): Promise<void> {
    await this.#bar('block', key, duration, options)
  }

  /** A pause: for `duration` consume is denied and acquire waits. A hold never shortens one that is longer. */
  async hold(key: string, duration: Duration, options?: ShapeOptions): Promise<void> {
    await this.#bar('hold', key, duration, options)
  }

  /** Listens to an event; returns what ends it. */
  on<E extends keyof LimiterEvents>(event: E, listener: Listener<E>): () => void {
    return this.#events.on(event, listener)
  }

  /** Reports a likely mistake once per code. For adapters. */
  warn(code: string, message: string): void {
    this.#warnings.warn(code, message)
  }

  /** Rejects those who wait and all later calls. Closes the store if the limiter made it. */
  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    await this.#queue.close(closedError())
    if (this.#ownsStore) await this.#store.close()
  }

  async #correctBy(kind: 'refund' | 'charge', key: string, options?: CallOptions): Promise<void> {
    const { keyspace } = this.#planOf(options)
    const cost = costOf(options)
    const stored = storedKey(key)
    if (cost > 0) await keyspace.correct({ kind, key: stored, cost })
  }

  async #bar(kind: 'block' | 'hold', key: string, duration: Duration, options?: ShapeOptions): Promise<void> {
    const us = parseDuration(duration, 'duration') * 1000
    await this.#planOf(options).keyspace.correct({ kind, key: storedKey(key), duration: us })
  }

  #planOf(options: ShapeOptions | undefined): Plan {
    if (this.#closed) throw closedError()
    return options?.policies === undefined ? this.#plan : this.#plans.of(options.policies)
  }

  #told(key: string, decision: Decision): Decision {
    if (this.#events.has('decision')) this.#events.emit('decision', { key, decision })
    return decision
  }

  #listenerFailed(event: keyof LimiterEvents, error: unknown): void {
    this.warn('LISTENER_FAILED', `a listener of '${event}' threw: ${String(error)}`)
  }

  /** Stores tell in the middle of an operation, so listeners hear of it later. */
  #hear(notice: Notice): void {
    if (!this.#events.has(notice.event) && notice.event !== 'warning') return
    queueMicrotask(() => {
      if (notice.event === 'warning') return this.#warnings.warn(notice.code, notice.message, notice.id)
      const { event, ...told } = notice
      this.#events.emit(event, told)
    })
  }
}

const LONGEST_WAIT_MS = 86_400_000

function costOf(options: CallOptions | undefined): number {
  return options?.cost === undefined ? 1 : checkCost(options.cost)
}

function withoutNameAndPolicies({ name: _n, policies: _p, ...settings }: LimiterOptions): LimiterSettings {
  return settings
}

function closedError(): StoreError {
  return new StoreError('CLOSED', 'the limiter is closed')
}
