import type { Clock } from '../../values/clock.js'
import type { Duration } from '../../values/duration.js'
import { clock, type DeclarationOf, duration, flag, text, whole } from '../../values/options.js'
import { denialCache, type DenialCacheOptions } from '../denial-cache-options.js'
import { maxShapes } from '../shapes.js'

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
   * Longest wait of the first calls for the connection: 0 to 1 minute, counted from when the store began to connect, for a
   * client that was handed in from the first call. The deadline of these calls begins after that wait.
   * A number is in milliseconds.
   * @default '1s'
   */
  readonly startTimeout?: Duration
}

/** Options of `redisStore`. */
export const REDIS_STORE = {
  prefix: text(
    '1 to 64 characters of printable ASCII without spaces and braces',
    /^[\x21-\x7a|~]{1,64}$/,
    'sluice',
  ),
  clock,
  denialCache,
  groupCommit: flag(true),
  maxPending: whole(1000, 1_000_000, 10_000),
  maxShapes,
  lazy: flag(false),
  startTimeout: duration(0, '1m', '1s'),
} satisfies DeclarationOf<RedisStoreOptions>
