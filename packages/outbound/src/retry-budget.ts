import { nowMs, number } from '@sluice/core/internal'

/** How many retries a client may make of calls that were refused: the sum of both. */
export interface RetryBudgetOptions {
  /**
   * Retries for each call, 0 to 10.
   * @default 0.1
   */
  readonly ratio?: number
  /**
   * Retries for each second, 0 to 1,000.
   * @default 1
   */
  readonly perSecond?: number
}

export const RETRY_BUDGET = { ratio: number(0, 10, 0.1), perSecond: number(0, 1000, 1) }

/**
 * The retries that a client may still make, so that a provider in trouble gets little more than its usual calls, as in
 * Finagle's RetryBudget. What calls have added is forgotten with a time constant of ten seconds, and what seconds add is
 * worth ten seconds at most: a client may begin with as much.
 */
export class RetryBudget {
  readonly #ratio: number
  readonly #reserve: number
  #left: number
  #at = nowMs()

  /**
   * Begins with the retries that `perSecond` grants in ten seconds (`REMEMBERED_MS`). That is also `#reserve`, the number to
   * which `#left` returns with time. `ratio` is the retries that each call adds.
   */
  constructor({ ratio, perSecond }: Required<RetryBudgetOptions>) {
    this.#ratio = ratio
    this.#left = this.#reserve = (perSecond * REMEMBERED_MS) / 1000
  }

  /** Counts the first attempt of a call, which adds `ratio` retries, 0.1 for example. */
  earn(): void {
    this.#update()
    this.#left += this.#ratio
  }

  /** Takes one retry out of the budget, if a whole one is left (`#left` is a fraction). Returns whether it did. */
  spend(): boolean {
    this.#update()
    if (this.#left < 1) return false
    this.#left--
    return true
  }

  /**
   * Brings `#left`, the number of retries at the instant `#at`, up to the present. Its distance from `#reserve`, due to calls that
   * added retries and to retries that were made, fades exponentially with a time constant of ten seconds; so the number, a
   * fraction, returns to what `perSecond` grants.
   */
  #update(): void {
    const now = nowMs()
    const kept = Math.exp((this.#at - now) / REMEMBERED_MS)
    this.#at = now
    this.#left = this.#reserve + (this.#left - this.#reserve) * kept
  }
}

const REMEMBERED_MS = 10_000
