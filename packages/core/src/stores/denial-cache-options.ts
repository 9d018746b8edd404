import type { Duration } from '../values/duration.js'
import { type DeclarationOf, duration, type Option, read, whole } from '../values/options.js'
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

const DENIAL_CACHE = {
  maxAge: duration('1ms', '1h', '1s'),
  maxKeys: whole(1, 2 ** 23, 100_000),
} satisfies DeclarationOf<DenialCacheOptions>

/** Bounds of the cache; undefined for `false`, which disables it. */
export const denialCache: Option<DenialCacheBounds | undefined> = {
  accepts: '{ maxAge, maxKeys } or false',
  otherwise: boundsOf({}),
  parse: (value) => (value === false ? undefined : boundsOf(value as DenialCacheOptions)),
}

function boundsOf(given: DenialCacheOptions): DenialCacheBounds {
  const about = { what: 'denialCache', prefix: 'denialCache.' }
  const { maxAge, maxKeys } = read(DENIAL_CACHE, given, about)
  return { maxAge: maxAge * 1000, maxKeys }
}
