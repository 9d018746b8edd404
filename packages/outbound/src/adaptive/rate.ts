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
 * The search for an unknown rate, in units per window of the other side. A rate counts as proven once at least 80 % of it
 * was used for 1.2 windows without a refusal: the other side may not have counted enough of a shorter burst. `now` is in
 * milliseconds.
 */
export function adaptiveRate(bounds: AdaptiveOptions, windowMs: number, now: () => number): Ceiling {
  const isProven = (limit: number, served: number, ms: number): boolean =>
    ms >= ROUND * windowMs && served >= (IN_USE * limit * ms) / windowMs
  return new Ceiling(bounds, { step: 0, windowMs, isProven }, now)
}

/** The rates of the keys of one `adaptive` option, in the place of a limiter: its turns come evenly, at the rate of their key. */
export class AdaptiveRates {
  readonly name = 'adaptive'
  readonly #limits: KeyLimits<number>
  readonly #limiter

  /** Follows the rate by the clock `now`, in milliseconds. */
  constructor(
    bounds: AdaptiveOptions,
    readonly windowMs: number,
    now: () => number,
  ) {
    const { initial } = bounds
    this.#limits = new KeyLimits({ initial, follow: () => adaptiveRate(bounds, windowMs, now) })
    this.#limiter = createLimiter({ name: this.name, policies: evenTurns(initial, windowMs) })
  }

  /**
   * Waits for a turn at the present rate of the key. The decision has that rate as its `limit`, in place of the 1 which a
   * policy of even turns lets pass at once.
   */
  async acquire(key: string, options: AcquireOptions): Promise<Decision> {
    const value = this.#limits.of(storedKey(key))
    const policies = evenTurns(value, this.windowMs)
    const decision = await this.#limiter.acquire(key, { ...options, policies })
    return Object.defineProperty(decision, 'limit', { value, enumerable: true })
  }

  /** Grants no turns of the key for this many milliseconds. */
  hold(key: string, ms: number): Promise<void> {
    return this.#limiter.hold(key, ms)
  }

  /** Takes account of an attempt. Returns how the rate of its key has changed; undefined if it has not. */
  ended(key: string, outcome: CallOutcome, tookMs: number, cost: number): LimitChange | undefined {
    return this.#limits.ended(storedKey(key), outcome, tookMs, cost)
  }
}

/**
 * A policy of evenly spaced turns at a rate of units per window. A policy's limit must be whole, and rates may be
 * fractions, where many processes share a small one: so it is stated as 60 times the rate in 60 windows.
 */
function evenTurns(rate: number, windowMs: number): readonly Policy[] {
  const limit = Math.max(1, Math.round(rate * WINDOWS))
  return [gcra({ name: 'adaptive', limit, window: windowMs * WINDOWS, burst: 1 })]
}

const WINDOWS = 60
/** In windows, how long a rate is in use before it is believed, and the share of it that must have been used. */
const [ROUND, IN_USE] = [1.2, 0.8]
