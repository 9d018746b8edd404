import { type Duration, type Limiter, parseDuration, PolicyError, StoreError } from '@sluice/core'
import { Generations } from './generations.js'
import { Sampling, scaled } from './sampling.js'
import type { KeyCount } from './space-saving.js'

export interface TopKeysOptions {
  /**
   * Keys that are held, 1 to 10,000. Each key with more than one call in `size` is listed.
   * @default 100
   */
  readonly size?: number
  /**
   * How far the lists reach back, 1 s to 1 day. Counted in two halves, so they cover between half of it and all of it.
   * @default '10m'
   */
  readonly window?: Duration
}

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
 * Begins to count the keys with the most calls of a limiter in this process; a second call returns the same lists. A key came
 * at most `count` times and at least `count - error` times.
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
  const known = COUNTED.get(limiter)
  if (known) return known
  if (limiter.isClosed) throw new StoreError('CLOSED', `the limiter '${limiter.name}' is closed`)
  const counted = count(limiter, options)
  COUNTED.set(limiter, counted)
  return counted
}

function count(limiter: Limiter, { size = 100, window = '10m' }: TopKeysOptions): TopKeys {
  if (!(Number.isInteger(size) && size >= 1 && size <= 10_000)) {
    throw new PolicyError(
      'INVALID_OPTION',
      `size must be a whole number from 1 to 10000, got ${String(size)}`,
    )
  }
  const windowMs = parseDuration(window, 'window', { least: 1000, most: 86_400_000, error: PolicyError })
  const denied = new Generations(size)
  const all = new Generations(size)
  const sampling = new Sampling()
  const end = limiter.on('decision', ({ key, decision }) => {
    if (decision.reason !== undefined) denied.add(key)
    if (sampling.isPicked()) all.add(key)
  })
  // A timer, because to read the clock for each decision takes longer than to count it.
  const timer = setInterval(() => {
    denied.turn()
    all.turn()
    if (limiter.isClosed) stop()
  }, windowMs / 2)
  timer.unref()
  return {
    denied: () => sorted(denied.summary().keys),
    all: () => sorted(all.summary().keys.map(scaled)),
    stop,
  }

  function stop(): void {
    end()
    clearInterval(timer)
    COUNTED.delete(limiter)
  }
}

function sorted(keys: readonly KeyCount[]): readonly KeyCount[] {
  return keys.toSorted((a, b) => b.count - a.count)
}

const COUNTED = new WeakMap<Limiter, TopKeys>()
