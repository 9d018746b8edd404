import { type AdaptiveLimit, type Duration, type FollowedLimit, PolicyError } from '@sluice/core'
import { duration, number, readOptions, required, whole } from '@sluice/core/internal'
import type { AdaptiveOptions } from './ceiling.js'
import { AdaptiveConcurrency } from './concurrency.js'
import { AdaptiveRates } from './rate.js'

/** An unknown rate, in units per window, such as 0.5 to 200 calls a second. */
export interface AdaptiveRateOptions extends AdaptiveOptions {
  /**
   * The window over which the other side counts, 100 ms to 1 day, as far as that is known; a number is in milliseconds.
   * @default '1s'
   */
  readonly window?: Duration
}

/**
 * Makes a limit that finds by itself how many calls at once the other side bears, for `limit` of a semaphore. It goes up until
 * calls are refused or become slow, and stays below. `limitFetch` and the other clients, and queues, report what becomes of calls; code that takes permits
 * itself says so by `permit.release('refused')`.
 * @example
 * const semaphore = createSemaphore({ limit: adaptive({ min: 1, initial: 4, max: 100 }) })
 * const limited = limitFetch(fetch, { limiter, semaphore })
 * @throws {PolicyError} INVALID_LIMIT, INVALID_OPTION.
 */
export function adaptive(options: AdaptiveOptions): AdaptiveLimit {
  const bounds = checkedOrder(readOptions(CONCURRENCY, options, { what: 'adaptive' }))
  const follow = (): FollowedLimit => new AdaptiveConcurrency(bounds, fleetTime)
  // A limit begins below `bounds.initial`, to measure the latency at few calls at once.
  return { initial: follow().limit, follow }
}

/**
 * Checks the option `adaptive`, here called `name` in messages of errors, and returns the rates that it describes.
 * Clients that are given the same object get the same rates, and so share what is found.
 * @throws {PolicyError} INVALID_OPTION, INVALID_DURATION.
 */
export function adaptiveRates(options: AdaptiveRateOptions, name: string): AdaptiveRates {
  const known = ratesByOptions.get(options)
  if (known) return known
  const { window: windowMs, ...bounds } = readOptions(RATE, options, { what: name, prefix: `${name}.` })
  const rates = new AdaptiveRates(checkedOrder(bounds), windowMs, fleetTime)
  ratesByOptions.set(options, rates)
  return rates
}

const ratesByOptions = new WeakMap<AdaptiveRateOptions, AdaptiveRates>()

/** Returns the bounds as they are if min <= initial <= max. @throws {PolicyError} INVALID_OPTION otherwise. */
function checkedOrder(bounds: AdaptiveOptions): AdaptiveOptions {
  const { min, initial, max } = bounds
  if (min <= initial && initial <= max) return bounds
  const why = `adaptive needs min <= initial <= max, got ${min}, ${initial}, ${max}`
  throw new PolicyError('INVALID_OPTION', why)
}

/** Milliseconds since 1970, by a clock that a later change of the system's clock does not move. */
function fleetTime(): number {
  return performance.timeOrigin + performance.now()
}

/** The declarations of the options `min`, `initial` and `max`, which all take the same values. */
function boundsOf<Each>(one: Each): Record<keyof AdaptiveOptions, Each> {
  return { min: one, initial: one, max: one }
}

const CONCURRENCY = boundsOf(required(whole(1, 1_000_000, undefined, 'INVALID_LIMIT')))
const RATE = { ...boundsOf(required(number(0.01, 1_000_000, 1))), window: duration(100, '1d', '1s') }
