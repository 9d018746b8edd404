import { type Duration, type Limiter, PolicyError, type Store, StoreError } from '@sluice/core'
import {
  counting,
  type DeclarationOf,
  type DecisionCounter,
  duration,
  readOptions,
  type Settings,
  unchecked,
  whole,
} from '@sluice/core/internal'
import { isOverruled } from '../sources/policy-counts.js'
import { KeyCounts } from './key-counts.js'
import { hashed, type KeyHash, keyHashOf } from './key-hash.js'
import { share } from './posting.js'
import { scaled } from './sampling.js'
import { type KeyCount, sorted } from './space-saving.js'

export interface TopKeysOptions {
  /**
   * Keys that are held, 1 to 10,000. Each key with more than one call in `size` is listed.
   * @default 100
   */
  readonly size?: number
  /**
   * How far the lists reach back, 1 s to 1 day. Counted in two halves, so they cover between half of it and all of it.
   * A number is in milliseconds.
   * @default '10m'
   */
  readonly window?: Duration
  /**
   * Lists and shares a hash in place of each key: true for `hashKey(key)`, or a function that gives different keys different
   * texts, for example an HMAC. `denied()` and `all()` throw INVALID_OPTION where it returns no string.
   * @default false
   */
  readonly hashKeys?: boolean | KeyHash
  /**
   * A store with a board, `redisStore` or `memoryStore`, through which `fleetTopKeys` merges the lists of all processes. Each
   * process writes to it every 10 s, once for all of its limiters: their lists, and their decisions by policy and result.
   * @default undefined: nothing is shared
   */
  readonly fleet?: Store
}

const TOP_KEYS = {
  size: whole(1, 10_000, 100),
  window: duration('1s', '1d', '10m'),
  hashKeys: unchecked<boolean | KeyHash | undefined>(),
  fleet: unchecked<Store | undefined>(),
} satisfies DeclarationOf<TopKeysOptions>

/** Made by `topKeys`. Keys are listed with the most calls first. */
export interface TopKeys {
  /** The keys with the most denied calls, and in shadow mode those that would be. Each denial is counted. */
  denied(): readonly KeyCount[]
  /** The keys with the most calls, of a sample of 1 in 16: `error` includes the sampling. */
  all(): readonly KeyCount[]
  /** Counts no further call. */
  stop(): void
}

/**
 * Begins to count the keys with the most calls of a limiter in this process; a second call returns the same lists. `observe` begins
 * it already: the first call then takes over those counts with the given `hashKeys` and `fleet`, unless it asks for another `size` or
 * `window`. A key came at most `count` times and at least `count - error` times. A key of more than 128 characters is listed as
 * stores keep it: `sha256:` and its digest.
 * @throws {PolicyError} INVALID_OPTION, INVALID_DURATION; StoreError CLOSED for a limiter that is closed.
 * @example
 * import { createLimiter, gcra } from '@sluice/core'
 * import { topKeys } from '@sluice/metrics'
 * const limiter = createLimiter({ policies: [gcra({ limit: 2, window: '1m' })] })
 * const top = topKeys(limiter)
 * for (let i = 0; i < 5; i++) await limiter.consume('user:42')
 * console.log(top.denied()) // [{ key: 'user:42', count: 3, error: 0 }]
 */
export function topKeys(limiter: Limiter, options: TopKeysOptions = {}): TopKeys {
  if (typeof limiter?.consume !== 'function' || typeof limiter.on !== 'function') {
    throw new PolicyError('INVALID_OPTION', 'topKeys takes a limiter that createLimiter() made')
  }
  const known = LISTS_OF_LIMITERS.get(limiter)
  const wasCalledBefore = !BEGUN_BY_OBSERVE.has(limiter)
  const hasNoOptions = Object.keys(options ?? {}).length === 0
  if (known && (wasCalledBefore || hasNoOptions)) {
    BEGUN_BY_OBSERVE.delete(limiter)
    return known
  }
  if (limiter.isClosed) throw new StoreError('CLOSED', `the limiter '${limiter.name}' is closed`)
  const settings = readOptions(TOP_KEYS, options, { what: 'topKeys' })
  const canTakeOver = settings.size === DEFAULTS.size && settings.window === DEFAULTS.window
  const takenOver = canTakeOver ? BEGUN_BY_OBSERVE.get(limiter)?.counts : undefined
  const counted = beginCounting(limiter, settings, takenOver)
  known?.stop()
  LISTS_OF_LIMITERS.set(limiter, counted)
  return counted
}

/**
 * Counts the keys of a limiter that is observed, for a later call of `topKeys`: an operator who calls it in an incident asks about
 * the minutes before. Does nothing if `topKeys` counts them already. Returns a function that an observer calls once, at its end: the
 * last observer of a limiter ends the counting, unless `topKeys` was called for the limiter.
 */
export function countKeys(limiter: Limiter): () => void {
  const isCountedByTopKeys = LISTS_OF_LIMITERS.has(limiter) && !BEGUN_BY_OBSERVE.has(limiter)
  if (isCountedByTopKeys) return () => {}
  const begun = BEGUN_BY_OBSERVE.get(limiter) ?? { counts: new KeyCounts(DEFAULTS.size), observers: 0 }
  begun.observers++
  if (begun.observers === 1) {
    LISTS_OF_LIMITERS.set(limiter, beginCounting(limiter, DEFAULTS, begun.counts))
    BEGUN_BY_OBSERVE.set(limiter, begun)
  }
  return () => {
    begun.observers--
    const wereTakenOver = BEGUN_BY_OBSERVE.get(limiter) !== begun
    if (begun.observers === 0 && !wereTakenOver) LISTS_OF_LIMITERS.get(limiter)!.stop()
  }
}

/**
 * Starts to count the keys of a limiter's decisions, and returns the lists. Counts are kept in two generations of half a window
 * each. When a half ends, the older generation is dropped: old calls are forgotten, but no figure restarts at 0. A decision that
 * allowed its key is not counted if another key of the same call denied the call (`isOverruled`). With `fleet` the counts are
 * posted for other processes. Counting ends with `stop`, or at most half a window after the limiter is closed.
 */
function beginCounting(
  limiter: Limiter,
  { size, window: windowMs, hashKeys, fleet }: Settings<typeof TOP_KEYS>,
  counts = new KeyCounts(size),
): TopKeys {
  const hash = keyHashOf(hashKeys)
  const unshare = fleet && share(fleet, { limiter, counts, hash })
  const count: DecisionCounter = (decision, _operation, decidedBy, _storeMs, together) => {
    if (!isOverruled(decision, decidedBy, together)) counts.count(decision.key, decision)
  }
  const end = limiter.on('decision', counting(count))
  const timer = startGenerations(counts, windowMs, new WeakRef(limiter))
  return {
    denied: () => sorted(hashed(counts.denied(), hash).keys),
    all: () => sorted(hashed(counts.sampled(), hash).keys.map(scaled)),
    stop,
  }

  /** Ends the counting and the posts for other processes. A later call of `topKeys` for the limiter counts anew. */
  function stop(): void {
    end()
    unshare?.()
    clearInterval(timer)
    LISTS_OF_LIMITERS.delete(limiter)
    BEGUN_BY_OBSERVE.delete(limiter)
  }
}

/**
 * Starts a timer that begins a new generation of the counts each half of the window, until the limiter is closed. Reading the
 * clock for each decision would take longer than counting it. The timer keeps neither the process nor the limiter alive.
 */
function startGenerations(counts: KeyCounts, windowMs: number, limiter: WeakRef<Limiter>): NodeJS.Timeout {
  const timer = setInterval(() => {
    counts.beginGeneration()
    const alive = limiter.deref()
    if (!alive) clearInterval(timer)
    else if (alive.isClosed) LISTS_OF_LIMITERS.get(alive)?.stop()
  }, windowMs / 2)
  timer.unref?.()
  return timer
}

const LISTS_OF_LIMITERS = new WeakMap<Limiter, TopKeys>()
/** The counts that `observe` has begun, and how many observe the limiter, until `topKeys` is called for it. */
const BEGUN_BY_OBSERVE = new WeakMap<Limiter, { readonly counts: KeyCounts; observers: number }>()
const DEFAULTS = readOptions(TOP_KEYS, {}, { what: 'topKeys' })
