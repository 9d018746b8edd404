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
 * An unknown rate, in units per window of the other side. It is believed once it was in use for longer than a window:
 * the other side may not have counted enough of a shorter burst. `now` is in milliseconds.
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

  /** The decision shows the rate as its limit, in place of the 1 that even turns have at once. */
  async acquire(key: string, options: AcquireOptions): Promise<Decision> {
    const value = this.#limits.of(storedKey(key))
    const policies = evenTurns(value, this.windowMs)
    const decision = await this.#limiter.acquire(key, { ...options, policies })
    return Object.defineProperty(decision, 'limit', { value, enumerable: true })
  }

  hold(key: string, ms: number): Promise<void> {
    return this.#limiter.hold(key, ms)
  }

  /** Takes account of an attempt. Returns how the rate of its key has changed; undefined if it has not. */
  ended(key: string, outcome: CallOutcome, tookMs: number, cost: number): LimitChange | undefined {
    return this.#limits.ended(storedKey(key), outcome, tookMs, cost)
  }
}

/** Rates are fractions where many processes share a small one, and limits are whole: they count for several windows. */
function evenTurns(rate: number, windowMs: number): readonly Policy[] {
  const limit = Math.max(1, Math.round(rate * WINDOWS))
  return [gcra({ name: 'adaptive', limit, window: windowMs * WINDOWS, burst: 1 })]
}

const WINDOWS = 60
/** In windows, how long a rate is in use before it is believed, and the share of it that must have been used. */
const [ROUND, IN_USE] = [1.2, 0.8]
