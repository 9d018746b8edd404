import type { AdaptReason } from '@sluice/core'
import { type AdaptiveOptions, Ceiling } from './ceiling.js'

/**
 * An unknown number of calls at once. Where the other side refuses calls, a `Ceiling` finds it. Where it lets them wait,
 * the latency does, by the gradient of Envoy's adaptive concurrency filter: the limit follows baseline / latency, plus one.
 * The baseline is the latency at three calls at once. It is measured at each full minute, so that all processes of a fleet
 * measure together: beside others at full load each would measure the queue that they cause, and all limits would drift up.
 */
export class AdaptiveConcurrency {
  readonly #ceiling: Ceiling
  /** The most calls at once that keep the latency near the baseline. */
  #latencyLimit: number
  /** Undefined while it is measured. */
  #baselineMs: number | undefined
  #measureAt = 0
  #since: number
  #calls = 0
  #callsMs = 0

  /**
   * Begins with `bounds.initial` calls at once. `now` returns milliseconds of a clock that the fleet has in common. The ceiling,
   * the limit that refusals find, moves in steps of one, and is proven when twice as many calls were served as it allows at once.
   */
  constructor(bounds: AdaptiveOptions, now: () => number) {
    const isProven = (limit: number, served: number): boolean => served >= 2 * limit
    this.#ceiling = new Ceiling(bounds, { step: 1, windowMs: 1000, isProven }, now)
    this.#latencyLimit = bounds.initial
    this.#since = now()
  }

  /**
   * The most calls at once for now, a whole number: the lower of the limits that refusals (`#ceiling`) and the latency
   * (`#latencyLimit`) allow. While the baseline latency is measured, it is 3 at most. It is never below the user's `min`.
   */
  get limit(): number {
    const latencyLimit = this.#baselineMs === undefined ? AT_BASELINE : this.#latencyLimit
    return Math.floor(Math.max(this.#ceiling.bounds.min, Math.min(this.#ceiling.limit, latencyLimit)))
  }

  /**
   * Moves the limit by a call that took `ms` milliseconds and ended now. The limit is the lower of two. The ceiling is found by
   * refusals: it gets every refusal, but a served call only while the ceiling is the lower limit and the call had to wait for its
   * permit (`waited`), because a limit that no call waits for is not tested. The other limit follows the mean latency of served
   * calls, compared with the baseline: the latency at few calls at once. A call that was sent before the mean was begun does not
   * count. When it is time (`#measureAt`), the baseline is measured anew. Returns why the limit may have changed, or undefined.
   */
  ended(ms: number, refused: boolean, waited: boolean): AdaptReason | undefined {
    const now = this.#ceiling.now()
    const isCeilingLower = this.#baselineMs !== undefined && this.#ceiling.limit <= this.#latencyLimit
    const testsCeiling = refused || (waited && isCeilingLower)
    const reasonOfCeiling = testsCeiling ? this.#ceiling.ended(ms, refused, 1) : undefined
    if (this.#baselineMs !== undefined && now >= this.#measureAt) {
      this.#baselineMs = undefined
      this.#beginMean(now)
      return 'baseline'
    }
    const sentAt = now - ms
    const countsInMean = !refused && sentAt >= this.#since
    const reasonOfMean = countsInMean ? this.#addToMean(now, ms, waited) : undefined
    return reasonOfMean ?? reasonOfCeiling
  }

  /**
   * Adds a call that was served in `ms` milliseconds to the mean latency. When there are 20 calls, or twice as many as the limit
   * if that is more, the mean becomes the baseline if that is being measured, and otherwise moves the limit; then another mean
   * begins. Returns why the limit may have changed; undefined until there are enough calls.
   */
  #addToMean(now: number, ms: number, waited: boolean): AdaptReason | undefined {
    this.#calls++
    this.#callsMs += ms
    if (this.#calls < Math.max(CALLS_OF_MEAN, 2 * this.limit)) return undefined
    const meanMs = this.#callsMs / this.#calls
    const baselineMs = this.#baselineMs
    if (baselineMs === undefined) this.#setBaseline(meanMs, now)
    else this.#moveLatencyLimit(baselineMs / meanMs, waited)
    this.#beginMean(now)
    return baselineMs === undefined ? 'baseline' : 'latency'
  }

  /**
   * Sets the baseline, the latency at three calls at once, and when it is measured again (`#measureAt`): at the next full minute
   * of the clock that the fleet has in common, so that all processes measure together. If this measurement, begun at `#since`,
   * took more than a twentieth of a minute, the next is at a multiple of 2, 4, 8 ... minutes: measuring, which allows three calls
   * at once, is to take a twentieth of the time at most.
   */
  #setBaseline(meanMs: number, now: number): void {
    this.#baselineMs = meanMs
    const measuredMs = now - this.#since
    const doublings = Math.max(0, Math.ceil(Math.log2((MOST_MEASURED * measuredMs) / MINUTE_MS)))
    const everyMs = MINUTE_MS * 2 ** doublings
    this.#measureAt = (Math.floor(now / everyMs) + 1) * everyMs
  }

  /**
   * Moves the limit that the latency allows. `share` is the baseline divided by the mean latency: below 1 if calls are slower than
   * at the baseline. The limit is multiplied by 1.5 times the share, at least by 0.5 and at most by 1; means of few calls differ
   * by chance, therefore the 1.5. Then one is added, so that the limit grows while calls are not slower; but only if the call had
   * to wait for its permit (`waited`).
   */
  #moveLatencyLimit(share: number, waited: boolean): void {
    const gradient = Math.min(1, Math.max(0.5, TOLERANCE * share))
    const next = Math.min(this.limit, this.#latencyLimit) * gradient + 1
    const mayMove = next < this.#latencyLimit || waited
    if (mayMove) this.#latencyLimit = Math.min(next, this.#ceiling.bounds.max)
  }

  /** Begins another mean at the instant `now`: calls that were sent before do not count. */
  #beginMean(now: number): void {
    this.#since = now
    this.#calls = this.#callsMs = 0
  }
}

const AT_BASELINE = 3
/** The fewest calls whose latency makes a mean. */
const CALLS_OF_MEAN = 20
/** The baseline is measured for at most one part of so many of the time. */
const MOST_MEASURED = 20
const MINUTE_MS = 60_000
/** Latency may be so many times the baseline before the limit falls: means of few calls differ by chance. */
const TOLERANCE = 1.5
