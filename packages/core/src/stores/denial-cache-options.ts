import { type Duration, parseDuration } from '../values/duration.js'
import { expected, PolicyError } from '../values/errors.js'
import type { DenialCacheBounds } from './store.js'

/** Bounds of the cache of denials of a store in another process. */
export interface DenialCacheOptions {
  /**
   * Longest age of a cached denial, 1 ms to 1 hour.
   * @default '1s'
   */
  readonly maxAge?: Duration
  /**
   * Most denied keys that are cached, 1 to 8,388,608.
   * @default 100_000
   */
  readonly maxKeys?: number
}

/** Undefined for `false`, which disables the cache. @throws {PolicyError} INVALID_OPTION, INVALID_DURATION. */
export function denialCacheBounds(options: DenialCacheOptions | false = {}): DenialCacheBounds | undefined {
  if (options === false) return undefined
  if (typeof options !== 'object' || options === null) {
    const bound = 'denialCache must be { maxAge, maxKeys } or false'
    throw expected(PolicyError, 'INVALID_OPTION', bound, options)
  }
  const { maxAge = '1s', maxKeys = 100_000 } = options
  if (!(Number.isInteger(maxKeys) && maxKeys >= 1 && maxKeys <= MOST_DENIED_KEYS)) {
    const bound = `denialCache.maxKeys must be a whole number from 1 to ${MOST_DENIED_KEYS}`
    throw expected(PolicyError, 'INVALID_OPTION', bound, maxKeys)
  }
  const maxAgeMs = parseDuration(maxAge, 'denialCache.maxAge', { most: 3_600_000, error: PolicyError })
  return { maxAge: maxAgeMs * 1000, maxKeys }
}

const MOST_DENIED_KEYS = 8_388_608
