import type { Duration } from '../values/duration.js'
import { custom, type DeclarationOf, duration, read, REFUSED, whole } from '../values/options.js'
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

/** The bounds that the option `denialCache` sets, undefined for `false`, and REFUSED for what is neither. */
function parsed(value: unknown): DenialCacheBounds | undefined | typeof REFUSED {
  if (value === false) return undefined
  return typeof value === 'object' && value !== null ? boundsOf(value) : REFUSED
}

/** The bounds of a denial cache from the option `denialCache`, with the age in microseconds. */
function boundsOf(given: DenialCacheOptions): DenialCacheBounds {
  const { maxAge, maxKeys } = read(DENIAL_CACHE, given, { what: 'denialCache', prefix: 'denialCache.' })
  return { maxAge: maxAge * 1000, maxKeys }
}
