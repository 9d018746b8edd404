import type { KeyCount } from './space-saving.js'

/** One call in this many is sampled. */
export const SAMPLED = 16

/**
 * Picks calls at random, each with a chance of 1 in `SAMPLED`. The distance to the next one is drawn, so that a call that is
 * not picked costs a decrement. A fixed distance would miss a caller that comes at that distance.
 */
export class Sampling {
  #callsUntilPick: number

  /** `random` returns a number from 0 to 1, as Math.random does. */
  constructor(private readonly random = Math.random) {
    this.#callsUntilPick = this.#distance()
  }

  /**
   * Returns whether the present call belongs to the sample. To be called once for each call: it counts down to the next call that is
   * picked, and then draws a new distance.
   */
  picksThis(): boolean {
    if (--this.#callsUntilPick > 0) return false
    this.#callsUntilPick = this.#distance()
    return true
  }

  /**
   * Draws after how many calls the next one is picked: 1 or more, on average `SAMPLED`. The logarithm of a uniform random number
   * makes the distance geometric, so that each call has the same chance, as if a die were cast for it.
   */
  #distance(): number {
    return 1 + Math.floor(Math.log(1 - this.random()) / LOG_NOT_PICKED)
  }
}

const LOG_NOT_PICKED = Math.log(1 - 1 / SAMPLED)

/**
 * Estimates how many calls a key had in all from the count of its sampled calls, 1 in 16. The true number is between `count - error`
 * and `count` of the result in 99.99 % of all cases, which are four standard deviations to either side: n sampled calls may come
 * from a mean m with n = m ± 4√m, so m is (√(n + 4) ± 2)². The error that the count had already is included.
 */
export function scaled({ key, count, error }: KeyCount): KeyCount {
  const upper = Math.ceil((Math.sqrt(count + MARGIN) + Math.sqrt(MARGIN)) ** 2 * SAMPLED)
  const least = count - error
  const lower = Math.floor(Math.max(0, Math.sqrt(least + MARGIN) - Math.sqrt(MARGIN)) ** 2 * SAMPLED)
  return { key, count: upper, error: upper - lower }
}

/** Of four standard deviations, by the formula above: 4² / 4. */
const MARGIN = 4
