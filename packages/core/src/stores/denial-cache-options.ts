import type { Duration } from '../values/duration.js'
import { custom, type DeclarationOf, duration, readOptions, REFUSED, whole } from '../values/options.js'
import type { DenialCacheBounds } from './store.js'

/** Bounds of the cache of denials of a store in another process. */
export interface DenialCacheOptions {
  /**
   * Longest age of a cached denial, 1 ms to 1 hour; a number is in milliseconds.
   * @default '1s'
   */
  readonly maxAge?: Duration
  /**
   * Most denied keys that are cached, 1 to 8,388,608.
   * @default 100_000
   */
  readonly maxKeys?: number
}

const DENIAL_CACHE = {
  maxAge: duration('1ms', '1h', '1s'),
  maxKeys: whole(1, 2 ** 23, 100_000),
} satisfies DeclarationOf<DenialCacheOptions>

/** Bounds of the cache; undefined for `false`, which disables it. */
export const denialCache = custom('{ maxAge, maxKeys } or false', parsed, boundsOf({}))

/**
 * Reads the option `denialCache`: the bounds of the cache that it sets, undefined for `false`, which turns the cache off, and the
 * mark REFUSED for what is neither an object nor `false`.
 */
function parsed(value: unknown): DenialCacheBounds | undefined | typeof REFUSED {
  if (value === false) return undefined
  return typeof value === 'object' && value !== null ? boundsOf(value) : REFUSED
}

/**
 * Returns the bounds of the cache of denials from the option `denialCache`, with defaults for what is left out. `maxAge`, which
 * is read in milliseconds, becomes microseconds.
 * @throws {PolicyError} for a bound that is not valid.
 */
function boundsOf(given: DenialCacheOptions): DenialCacheBounds {
  const { maxAge, maxKeys } = readOptions(DENIAL_CACHE, given, {
    what: 'denialCache',
    prefix: 'denialCache.',
  })
  return { maxAge: maxAge * 1000, maxKeys }
}
