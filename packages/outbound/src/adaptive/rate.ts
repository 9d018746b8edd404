import {
  type AcquireOptions,
  type CallOutcome,
  createLimiter,
  type Decision,
  gcra,
  type LimitChange,
  type Policy,
} from '@sluice/core'
import { KeyLimits, storedKey } from '@sluice/core/internal'
import { type AdaptiveOptions, Ceiling } from './ceiling.js'

/**
 * Makes the limit that searches for an unknown rate, in units per window of the other side. A rate is proven once it was in use for
 * 1.2 windows without a refusal, and at least 80 % of it was served: of a shorter burst the other side may not have counted
 * enough. `now` is the clock, in milliseconds.
 */
export function adaptiveRate(bounds: AdaptiveOptions, windowMs: number, now: () => number): Ceiling {
  const isProven = (limit: number, served: number, ms: number): boolean =>
    ms >= ROUND * windowMs && served >= (IN_USE * limit * ms) / windowMs
  return new Ceiling(bounds, { step: 0, windowMs, isProven }, now)
}

/** Takes the place of a limiter for one `adaptive` option. Each key gets evenly spaced turns, at the rate that was found for it. */
export class AdaptiveRates {
  readonly name = 'adaptive'
  readonly #limits: KeyLimits<number>
  readonly #limiter
  /** Windows in which a policy states the rate. */
  readonly #windows: number

  /**
   * Begins with the rate `bounds.initial`, in units per window, for each key. The rate of a key follows its calls by the clock
   * `now`, in milliseconds. The turns come from a limiter of this process.
   */
  constructor(
    bounds: AdaptiveOptions,
    readonly windowMs: number,
    now: () => number,
  ) {
    const { initial } = bounds
    this.#limits = new KeyLimits({ initial, follow: () => adaptiveRate(bounds, windowMs, now) })
    this.#windows = windowsOf(bounds, windowMs)
    this.#limiter = createLimiter({ name: this.name, policies: this.#evenTurns(initial) })
  }

  /**
   * Waits for a turn of the key under a policy of its present rate, as a limiter's `acquire` does. The decision shows that rate
   * as its `limit`; by the policy it would be 1, the units that it lets pass at once.
   */
  async acquire(key: string, options: AcquireOptions): Promise<Decision> {
    const value = this.#limits.of(storedKey(key))
    const policies = this.#evenTurns(value)
    const decision = await this.#limiter.acquire(key, { ...options, policies })
    return Object.defineProperty(decision, 'limit', { value, enumerable: true })
  }

  /** Delays all turns of the key for `ms` milliseconds, in this process. */
  hold(key: string, ms: number): Promise<void> {
    return this.#limiter.hold(key, ms)
  }

  /**
   * A policy of evenly spaced turns at a rate of units per window, as a list. The limit of a policy must be a whole number, and a
   * rate need not be one, where many processes share a small rate. So the policy states the units of many windows; with a burst of
   * 1 that spaces the turns in the same way.
   */
  #evenTurns(rate: number): readonly Policy[] {
    const limit = Math.max(1, Math.round(rate * this.#windows))
    return [gcra({ name: 'adaptive', limit, window: this.windowMs * this.#windows, burst: 1 })]
  }

  /**
   * Takes account of an attempt that took `tookMs` milliseconds and `cost` units, from which the rate of its key is found.
   * Returns the rate before and after, with the reason, if it has changed; otherwise undefined.
   */
  ended(key: string, outcome: CallOutcome, tookMs: number, cost: number): LimitChange | undefined {
    return this.#limits.ended(storedKey(key), outcome, tookMs, cost)
  }
}

/**
 * The windows over which a rate is stated, which is one number for all rates within the bounds, as policies of other windows have
 * another state: so many that the smallest rate is 60 units or more, and rounding it changes it by less than 1 %. A policy of more
 * than an hour counts time in milliseconds, which are too coarse where the largest rate has turns of less than 10 ms: the windows
 * are an hour then, or 60 if that is longer.
 */
function windowsOf({ min, max }: AdaptiveOptions, windowMs: number): number {
  const longestMs = windowMs / max < 10 ? HOUR_MS : LONGEST_WINDOW_MS
  return Math.max(UNITS, Math.min(Math.ceil(UNITS / min), Math.floor(longestMs / windowMs)))
}

const UNITS = 60
const HOUR_MS = 3_600_000
const LONGEST_WINDOW_MS = 365 * 24 * HOUR_MS
/** Windows for which a rate is in use before it is proven, and the share of it that must have been served. */
const [ROUND, IN_USE] = [1.2, 0.8]
