import { type Decision, gcra, type Policy } from '@sluice/core'
import { type Bounds, Ceiling, type EndedAttempt, type LimitChange } from './ceiling.js'

/** Bounds in units per window. */
export interface RateBounds extends Bounds {
  readonly windowMs: number
}

/**
 * A rate that nobody knows, in units per window of the other side. It is believed once it was in use for longer than a window:
 * the other side may not have counted enough of a shorter burst.
 */
export class AdaptiveRate {
  readonly #ceiling: Ceiling
  readonly windowMs: number
  /** Even turns at the current rate. */
  policies: readonly Policy[]

  /** `now` is in milliseconds. */
  constructor(bounds: RateBounds, now: () => number) {
    const { windowMs } = bounds
    const isProven = (limit: number, served: number, ms: number): boolean =>
      ms >= ROUND * windowMs && served >= (IN_USE * limit * ms) / windowMs
    this.#ceiling = new Ceiling(bounds, { step: 0, windowMs, isProven }, now)
    this.windowMs = windowMs
    this.policies = [evenTurns(bounds)]
  }

  get limit(): number {
    return this.#ceiling.limit
  }

  /** Takes account of an attempt. Returns how the rate has changed; undefined if it has not. */
  ended(attempt: EndedAttempt): LimitChange | undefined {
    const from = this.limit
    const reason = this.#ceiling.ended(attempt)
    if (!reason) return undefined
    const { limit, windowMs } = this
    this.policies = [evenTurns({ initial: limit, windowMs })]
    return { limit, from, reason }
  }

  /** Lets a decision under the rate show it as its limit, in place of the 1 that even turns have at once. */
  showIn(decision: Decision): void {
    Object.defineProperty(decision, 'limit', { value: this.limit, enumerable: true })
  }
}

/** Rates are fractions where many processes share a small one, and limits are whole: they count for several windows. */
export function evenTurns({ initial, windowMs }: Pick<RateBounds, 'initial' | 'windowMs'>): Policy {
  const limit = Math.max(1, Math.round(initial * WINDOWS))
  return gcra({ name: 'adaptive', limit, window: windowMs * WINDOWS, burst: 1 })
}

const WINDOWS = 60
/** In windows, how long a rate is in use before it is believed, and the share of it that must have been used. */
const [ROUND, IN_USE] = [1.2, 0.8]
