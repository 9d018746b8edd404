import type { Policy } from '../algorithms/contract/policy.js'
import type { LeaseOptions } from '../leases/lease-options.js'
import type { PenaltyOptions } from './penalty-options.js'
import type { ResilienceOptions } from '../resilience/guarded-store.js'
import type { Store } from '../stores/store.js'
import { checkContract } from '../values/contract.js'
import { checkCost } from '../values/cost.js'
import { type Duration, parseDuration } from '../values/duration.js'
import { expected, InputError, PolicyError } from '../values/errors.js'
import { checkOptionNames } from '../values/option-names.js'
import { LIMITER_REPLACEMENTS } from './replaced-options.js'

export interface LimiterOptions extends ResilienceOptions {
  /**
   * Appears in keys, headers and metrics: 1 to 64 characters of printable ASCII. Required with a `store`, which other
   * limiters may share.
   * @default 'default'
   */
  readonly name?: string
  /** 1 to 10 policies. A call must pass all of them; if one denies it, it is charged under none. */
  readonly policies: readonly Policy[]
  /**
   * Where the state is kept. `limiter.close()` closes the default store, but not one that is passed in.
   * @default memoryStore()
   */
  readonly store?: Store
  /**
   * Reserves part of a hot key's allowance in one store call and serves later calls from memory for at most `ttl`. Limits
   * hold exactly at the moment each call is served.
   * @default undefined: every call asks the store
   */
  readonly leases?: LeaseOptions
  /**
   * Blocks a key that goes on calling after it was refused, for longer each time. A limiter with a penalty asks the store
   * about every call until a block; it takes no `leases`.
   * @default undefined: no penalty
   * @throws {PolicyError} INVALID_PENALTY.
   */
  readonly penalty?: PenaltyOptions
  /**
   * false is shadow mode: decides and counts as usual, but allows every call.
   * @default true
   */
  readonly enforce?: boolean
}

/** The options of a limiter that adapters copy for limiters of their own: where it counts, and what it does in an outage. */
export type LimiterSettings = Omit<LimiterOptions, 'name' | 'policies' | 'penalty'>

export interface ShapeOptions {
  /**
   * Policies of this call, for example those of the caller's tier. Lists of equal shapes (algorithms, windows and buckets,
   * in order) share what was consumed. A list of other shapes has a state of its own.
   * @default the limiter's policies
   */
  readonly policies?: readonly Policy[]
}

export interface CallOptions extends ShapeOptions {
  /**
   * Units that the call takes, a whole number from 0 to 2^31. A cost of 0 only reads.
   * @default 1
   */
  readonly cost?: number
}

export interface AcquireOptions extends CallOptions {
  /**
   * The longest wait for the turn, up to 1 day. A call whose turn is later is denied at once.
   * @default '30s'
   */
  readonly maxWait?: Duration
  /** When it aborts, the place is given back and the call rejects with the signal's reason. */
  readonly signal?: AbortSignal
}

/** @throws {InputError} INVALID_COST. */
export function costOf(options: CallOptions | undefined): number {
  if (options?.cost !== undefined) return checkCost(options.cost)
  // Some packages take the cost itself. Taken for options it would count as 1.
  if (options !== undefined && (typeof options !== 'object' || options === null)) {
    throw expected(
      InputError,
      'INVALID_COST',
      'the options of a call must be an object like { cost: 3 }',
      options,
    )
  }
  return 1
}

/** In microseconds. @throws {InputError} INVALID_DURATION. */
export function maxWaitOf({ maxWait }: AcquireOptions): number {
  return parseDuration(maxWait ?? '30s', 'maxWait', { least: 0, most: 86_400_000 }) * 1000
}

/** Every option there is. The type checker sees to it that none is missing. */
const OPTIONS: Record<keyof LimiterOptions, true> = {
  name: true,
  policies: true,
  store: true,
  onStoreError: true,
  deadline: true,
  leases: true,
  penalty: true,
  enforce: true,
}

/** @throws {PolicyError} INVALID_OPTION for an unknown option, an invalid store or `enforce`; NAME_REQUIRED. */
export function checkLimiterOptions(options: LimiterOptions): void {
  if (typeof options !== 'object' || options === null) {
    throw expected(PolicyError, 'INVALID_OPTION', 'createLimiter takes an object of options', options)
  }
  checkOptionNames(options, OPTIONS, LIMITER_REPLACEMENTS)
  const { name, store, leases, penalty, enforce = true } = options
  if (store !== undefined) checkStore(store)
  if (store !== undefined && name === undefined) {
    const why = 'a limiter with a store needs a name: other limiters may share the store'
    throw new PolicyError('NAME_REQUIRED', why)
  }
  if (penalty !== undefined && leases !== undefined) {
    const why =
      'penalty and leases exclude each other, because a lease serves calls that the store does not see'
    throw new PolicyError('INVALID_OPTION', `${why}: leave one of them out`)
  }
  if (typeof enforce !== 'boolean') {
    throw expected(PolicyError, 'INVALID_OPTION', 'enforce must be true or false', enforce)
  }
}

/** @throws {PolicyError} INVALID_OPTION, with what to write instead; VERSION_MISMATCH. */
export function checkStore(store: unknown): void {
  const parts = (store ?? {}) as Record<string, unknown>
  const has = (...names: readonly string[]): boolean =>
    names.every((name) => typeof parts[name] === 'function')
  if (has('keyspace', 'now', 'close')) return checkContract('store', parts)
  throw new PolicyError(
    'INVALID_OPTION',
    `store must be made by memoryStore() or redisStore(): ${adviceOn()}`,
  )

  function adviceOn(): string {
    if (store === null) return 'got null, leave it out for a memory store of its own'
    if (typeof store === 'string') return `got a text, write redisStore(${JSON.stringify(hidden(store))})`
    if (typeof store === 'function') return 'got a function, call it'
    if (has('sendCommand')) return 'got a Redis client, write redisStore(client)'
    if (has('increment') || has('consume'))
      return "got another library's store or limiter, which cannot be used here"
    if (has('then')) return 'got a promise, await it'
    return `got ${typeof store === 'object' ? 'an object without keyspace(), now() and close()' : typeof store}`
  }
}

/** A URL without its password. */
function hidden(url: string): string {
  return url.replace(/\/\/.*@/, '//…@').slice(0, 80)
}
