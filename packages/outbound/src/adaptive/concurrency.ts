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
  #most: number
  /** Undefined while it is measured. */
  #baselineMs: number | undefined
  #measureAt = 0
  #since: number
  #calls = 0
  #callsMs = 0

  /**
   * Begins with `bounds.initial` calls at once. `now` returns milliseconds of a clock that the fleet has in common. The ceiling,
   * the limit that refusals find, moves in steps of one; it is proven once twice as many calls were served as it allows at once.
   */
  constructor(bounds: AdaptiveOptions, now: () => number) {
    const isProven = (limit: number, served: number): boolean => served >= 2 * limit
    this.#ceiling = new Ceiling(bounds, { step: 1, windowMs: 1000, isProven }, now)
    this.#most = bounds.initial
    this.#since = now()
  }

  /**
   * The most calls at once for now, a whole number: the lower of what refusals allow (`#ceiling`) and what latency allows
   * (`#most`), or three instead of `#most` while the baseline latency is measured (undefined then). Never below the user's `min`.
   */
  get limit(): number {
    const most = this.#baselineMs === undefined ? AT_BASELINE : this.#most
    return Math.floor(Math.max(this.#ceiling.bounds.min, Math.min(this.#ceiling.limit, most)))
  }

  /**
   * Takes account of a call that took `ms` milliseconds until now. The limit is the lower of two. The ceiling, which refusals
   * find, learns of every refusal; of a served call it learns only while it is the lower one and the call had to wait for its
   * permit (`waited`), because a limit that no call waits for is not tested. The other limit follows the mean latency, compared
   * with the baseline, the latency at few calls at once. When it is time (`#measureAt`), the next measurement of the baseline
   * begins. Otherwise a call that was served, and sent since the mean was begun, counts for the mean. Returns why the limit may
   * have changed; undefined if it has not.
   */
  ended(ms: number, refused: boolean, waited: boolean): AdaptReason | undefined {
    const now = this.#ceiling.now()
    const isCeiling = this.#baselineMs !== undefined && this.#ceiling.limit <= this.#most
    let reason: AdaptReason | undefined
    if (refused || (waited && isCeiling)) reason = this.#ceiling.ended(ms, refused, 1)
    if (this.#baselineMs !== undefined && now >= this.#measureAt) {
      this.#baselineMs = undefined
      this.#restart(now)
      return 'baseline'
    }
    return refused || now - ms < this.#since ? reason : (this.#sample(now, ms, waited) ?? reason)
  }

  /**
   * Adds a call that was served in `ms` milliseconds to the mean latency. Once there are 20 calls, or twice as many as the limit
   * if that is more, the mean becomes the baseline if that is being measured, and otherwise moves the limit; then another mean
   * begins. Returns why the limit may have changed; undefined until there are enough calls.
   */
  #sample(now: number, ms: number, waited: boolean): AdaptReason | undefined {
    this.#calls++
    this.#callsMs += ms
    if (this.#calls < Math.max(CALLS, 2 * this.limit)) return undefined
    const meanMs = this.#callsMs / this.#calls
    const baselineMs = this.#baselineMs
    if (baselineMs === undefined) this.#measured(meanMs, now)
    else this.#follow(baselineMs / meanMs, waited)
    this.#restart(now)
    return baselineMs === undefined ? 'baseline' : 'latency'
  }

  /**
   * Sets the baseline, the latency at three calls at once, and when it is measured next: at the next full minute of the clock
   * that the fleet has in common, so that all processes measure together. After a measurement of more than a twentieth of a
   * minute that is every 2, 4, 8 ... minutes, so that measuring, at three calls at once, takes a twentieth of the time at most.
   */
  #measured(meanMs: number, now: number): void {
    this.#baselineMs = meanMs
    // The measurement began at `#since`. The slower the calls, the rarer it is.
    const doublings = Math.max(0, Math.ceil(Math.log2((MOST_MEASURED * (now - this.#since)) / MINUTE_MS)))
    const everyMs = MINUTE_MS * 2 ** doublings
    this.#measureAt = (Math.floor(now / everyMs) + 1) * everyMs
  }

  /**
   * Moves the limit that latency allows (`#most`). `share` is baseline / mean latency, below 1 where calls are slower than the
   * baseline. The limit is multiplied by 1.5 times the share, as means of few calls differ by chance, but by no less than 0.5 and
   * no more than 1; then one is added, so that it grows while calls are not slower. It grows only if calls wait for it
   * (`waited`).
   */
  #follow(share: number, waited: boolean): void {
    const gradient = Math.min(1, Math.max(0.5, TOLERANCE * share))
    const next = Math.min(this.limit, this.#most) * gradient + 1
    if (next < this.#most || waited) this.#most = Math.min(next, this.#ceiling.bounds.max)
  }

  /** Begins another mean at the instant `now`: calls that were sent before do not count. */
  #restart(now: number): void {
    this.#since = now
    this.#calls = this.#callsMs = 0
  }
}

const AT_BASELINE = 3
/** Calls whose latency makes a mean. */
const CALLS = 20
/** The baseline is measured for at most one part of so many of the time. */
const MOST_MEASURED = 20
const MINUTE_MS = 60_000
/** Latency may be so many times the baseline before the limit falls: means of few calls differ by chance. */
const TOLERANCE = 1.5
