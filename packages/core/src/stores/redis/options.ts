import type { Clock } from '../../values/clock.js'
import { type Duration, parseDuration } from '../../values/duration.js'
import { expected, PolicyError } from '../../values/errors.js'
import { type DenialCacheOptions, denialCacheBounds } from '../denial-cache-options.js'
import { checkMaxShapes } from '../shapes.js'
import type { DenialCacheBounds } from '../store.js'

export interface RedisStoreOptions {
  /**
   * The beginning of every key: 1 to 64 characters of printable ASCII without spaces and braces.
   * @default 'sluice'
   */
  readonly prefix?: string
  /**
   * Returns microseconds; for tests and simulations only. Default: Redis's own TIME, so that the clocks of processes do not
   * matter.
   */
  readonly clock?: Clock
  /**
   * Caches denials, so that repeated calls on an exhausted key need no round trip. A cached denial answers calls of the
   * same cost under the same limits, until the instant that Redis named. Corrections made by other processes (reset,
   * refund, a shorter block) are seen within `maxAge` (default 1 s); at most `maxKeys` (default 100,000) denied keys are
   * cached. `false` disables the cache.
   */
  readonly denialCache?: DenialCacheOptions | false
  /**
   * Combines calls made while others are in flight into one script call, which raises throughput several times. With few
   * calls in flight, a call is still sent immediately. In a Cluster only identical calls on one key are combined. `false`
   * sends every call on its own.
   * @default true
   */
  readonly groupCommit?: boolean
  /**
   * Most calls of this process that wait for Redis, each until its deadline: 1,000 to 1,000,000. At most 1,000 of them are
   * sent; a call whose deadline passes before it is sent is dropped. Calls beyond the bound are decided by `onStoreError`,
   * immediately.
   * @default 10_000
   */
  readonly maxPending?: number
  /**
   * Most lists of shapes whose scripts this process holds, over all limiters of the store; the least recently used one is
   * dropped. Redis 7.4 and newer drop unused scripts too; older servers keep each until SCRIPT FLUSH.
   * @default 1000
   */
  readonly maxShapes?: number
  /**
   * Whether the store's own connection is made with the first call instead of with the store.
   * @default false
   */
  readonly lazy?: boolean
  /**
   * Longest wait of the first calls for the store's own connection, counted from when the store began to connect: 0 to
   * 1 minute. The deadline of these calls begins after that wait.
   * @default '1s'
   */
  readonly startTimeout?: Duration
}

/** Options with their defaults, checked. */
export interface CheckedOptions {
  readonly prefix: string
  readonly clock: Clock | undefined
  readonly denialCache: DenialCacheBounds | undefined
  readonly groupCommit: boolean
  readonly maxPending: number
  readonly maxShapes: number
  readonly lazy: boolean
  readonly startMs: number
}

/** @throws {PolicyError} INVALID_OPTION */
export function checkOptions(options: RedisStoreOptions): CheckedOptions {
  const { prefix = 'sluice', clock, denialCache, groupCommit = true, maxPending = 10_000 } = options
  const { lazy = false, startTimeout = '1s' } = options
  if (typeof prefix !== 'string' || !/^[\x21-\x7a|~]{1,64}$/.test(prefix)) {
    throw invalid('prefix must be 1 to 64 characters of printable ASCII without spaces and braces', prefix)
  }
  if (clock !== undefined && typeof clock !== 'function') {
    throw invalid('clock must be a function that returns microseconds', clock)
  }
  if (typeof groupCommit !== 'boolean') throw invalid('groupCommit must be true or false', groupCommit)
  if (!(Number.isInteger(maxPending) && maxPending >= 1000 && maxPending <= 1_000_000)) {
    throw invalid('maxPending must be a whole number from 1000 to 1000000', maxPending)
  }
  if (typeof lazy !== 'boolean') throw invalid('lazy must be true or false', lazy)
  const maxShapes = checkMaxShapes(options.maxShapes)
  const startMs = parseDuration(startTimeout, 'startTimeout', { least: 0, most: 60_000, error: PolicyError })
  const bounds = denialCacheBounds(denialCache)
  return { prefix, clock, denialCache: bounds, groupCommit, maxPending, maxShapes, lazy, startMs }
}

function invalid(bound: string, value: unknown): Error {
  return expected(PolicyError, 'INVALID_OPTION', bound, value)
}
