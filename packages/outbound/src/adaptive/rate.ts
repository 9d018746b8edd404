import {
  type AcquireOptions,
  type AdaptReason,
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
 * the other side may not have counted enough of a shorter burst.
 */
export class AdaptiveRate {
  readonly #ceiling: Ceiling
  /** Even turns at the current rate. */
  policies: readonly Policy[]

  /** Follows the rate by the clock `now`, in milliseconds. */
  constructor(
    bounds: AdaptiveOptions,
    readonly windowMs: number,
    now: () => number,
  ) {
    const isProven = (limit: number, served: number, ms: number): boolean =>
      ms >= ROUND * windowMs && served >= (IN_USE * limit * ms) / windowMs
    this.#ceiling = new Ceiling(bounds, { step: 0, windowMs, isProven }, now)
    this.policies = evenTurns(bounds.initial, windowMs)
  }

  get limit(): number {
    return this.#ceiling.limit
  }

  /** Takes account of an attempt. Returns why the rate may be another one now. */
  ended(ms: number, refused: boolean, units: number): AdaptReason | undefined {
    const reason = this.#ceiling.ended(ms, refused, units)
    if (reason) this.policies = evenTurns(this.limit, this.windowMs)
    return reason
  }
}

/** The rates of the keys of one `adaptive` option, in the place of a limiter: its turns come evenly, at the rate of their key. */
export class AdaptiveRates {
  readonly name = 'adaptive'
  readonly #limits: KeyLimits<AdaptiveRate>
  readonly #limiter

  /** Follows the rate by the clock `now`, in milliseconds. */
  constructor(
    bounds: AdaptiveOptions,
    readonly windowMs: number,
    now: () => number,
  ) {
    const follow = (): AdaptiveRate => new AdaptiveRate(bounds, windowMs, now)
    this.#limits = new KeyLimits({ initial: bounds.initial, follow })
    this.#limiter = createLimiter({ name: this.name, policies: follow().policies })
  }

  /** The decision shows the rate as its limit, in place of the 1 that even turns have at once. */
  async acquire(key: string, options: AcquireOptions): Promise<Decision> {
    const { policies = this.#limiter.policies } = this.#limits.followed.get(storedKey(key)) ?? {}
    const decision = await this.#limiter.acquire(key, { ...options, policies })
    return Object.defineProperty(decision, 'limit', {
      value: this.#limits.of(storedKey(key)),
      enumerable: true,
    })
  }

  hold(key: string, ms: number): Promise<void> {
    return this.#limiter.hold(key, ms)
  }

  /** Takes account of an attempt. Returns how the rate of its key has changed; undefined if it has not. */
  ended(key: string, outcome: CallOutcome, tookMs: number, cost: number): LimitChange | undefined {
    if (outcome === 'failed') return undefined
    return this.#limits.ended(storedKey(key), (rate) => rate.ended(tookMs, outcome === 'refused', cost))
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
