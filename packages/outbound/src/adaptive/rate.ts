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
 * Makes the limit that searches for an unknown rate, in units per window of the other side. A rate is proven when it was in use
 * for 1.2 windows without a refusal, and at least 80 % of it was served. The other side may not have noticed a shorter burst.
 * `now` is the clock, in milliseconds.
 */
export function adaptiveRate(bounds: AdaptiveOptions, windowMs: number, now: () => number): Ceiling {
  const isProven = (limit: number, served: number, ms: number): boolean =>
    ms >= WINDOWS_IN_USE * windowMs && served >= (SHARE_IN_USE * limit * ms) / windowMs
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
   * Begins with the rate `bounds.initial`, in units per window, for each key. The rate of a key then follows what becomes of its
   * calls. `now` is the clock, in milliseconds. The turns come from a limiter of this process.
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
    const rate = this.#limits.of(storedKey(key))
    const policies = this.#evenTurns(rate)
    const decision = await this.#limiter.acquire(key, { ...options, policies })
    return Object.defineProperty(decision, 'limit', { value: rate, enumerable: true })
  }

  /** Delays all turns of the key for `ms` milliseconds, in this process. */
  hold(key: string, ms: number): Promise<void> {
    return this.#limiter.hold(key, ms)
  }

  /**
   * Returns a list of one policy, which spaces turns evenly at a rate of units per window. The rate may be a fraction, where many
   * processes share a small one, but the limit of a policy is a whole number. So the policy states the units of many windows;
   * with a burst of 1 it spaces the turns in the same way.
   */
  #evenTurns(rate: number): readonly Policy[] {
    const limit = Math.max(1, Math.round(rate * this.#windows))
    return [gcra({ name: 'adaptive', limit, window: this.windowMs * this.#windows, burst: 1 })]
  }

  /**
   * Raises or lowers the rate of a key by an attempt that took `tookMs` milliseconds and `cost` units. Returns the rate before
   * and after, with the reason, if it has changed; otherwise undefined.
   */
  ended(key: string, outcome: CallOutcome, tookMs: number, cost: number): LimitChange | undefined {
    return this.#limits.ended(storedKey(key), outcome, tookMs, cost)
  }
}

/**
 * Returns over how many windows policies state a rate: one number for all rates within the bounds, because policies of other
 * windows have another state. There are 60, or more if the smallest rate has less than 60 units in them; rounding 60 units
 * changes them by less than 1 %. More than 60 windows last at most an hour in all where the largest rate has turns of less than
 * 10 ms: a policy of a longer window counts time in milliseconds, too coarse for such turns.
 */
function windowsOf({ min, max }: AdaptiveOptions, windowMs: number): number {
  const longestMs = windowMs / max < 10 ? HOUR_MS : LONGEST_WINDOW_MS
  const windowsForUnits = Math.ceil(LEAST_UNITS / min)
  const mostWindows = Math.floor(longestMs / windowMs)
  return Math.max(LEAST_WINDOWS, Math.min(windowsForUnits, mostWindows))
}

const [LEAST_WINDOWS, LEAST_UNITS] = [60, 60]
const HOUR_MS = 3_600_000
const LONGEST_WINDOW_MS = 365 * 24 * HOUR_MS
/** Windows for which a rate is in use before it is proven, and the share of it that must have been served. */
const [WINDOWS_IN_USE, SHARE_IN_USE] = [1.2, 0.8]
