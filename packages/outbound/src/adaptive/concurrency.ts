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

  /** `now` is in milliseconds of a clock that the fleet has in common. */
  constructor(bounds: AdaptiveOptions, now: () => number) {
    const isProven = (limit: number, served: number): boolean => served >= 2 * limit
    this.#ceiling = new Ceiling(bounds, { step: 1, windowMs: 1000, isProven }, now)
    this.#most = bounds.initial
    this.#since = now()
  }

  /**
   * The most calls at once for now, a whole number: the lower of what refusals and what latency allow, and three while
   * the baseline is measured, but never below the user's `min`.
   */
  get limit(): number {
    const most = this.#baselineMs === undefined ? AT_BASELINE : this.#most
    return Math.floor(Math.max(this.#ceiling.bounds.min, Math.min(this.#ceiling.limit, most)))
  }

  /**
   * Takes account of a call that took `ms` milliseconds until now. `waited`: whether it had to wait for its permit; a limit that
   * no call waits for does not grow. Returns why the limit may be another one now: a refusal, the latency, or the begin or end of
   * a measurement of the baseline; undefined if it is not.
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
   * Adds a call that was served to the mean latency. Once there are enough of them, the mean becomes the baseline if that
   * is being measured, and otherwise moves the limit; then another mean begins. Returns why the limit may have changed.
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
   * Sets the baseline, and when it is measured next: at a full minute of the clock that the fleet has in common. If the
   * measurement took more than a twentieth of a minute, it is every two, four ... minutes, so that it takes little of the
   * time.
   */
  #measured(meanMs: number, now: number): void {
    this.#baselineMs = meanMs
    // Of slow calls more rarely, at minutes that the fleet has in common again.
    const doublings = Math.max(0, Math.ceil(Math.log2((MOST_MEASURED * (now - this.#since)) / MINUTE_MS)))
    const everyMs = MINUTE_MS * 2 ** doublings
    this.#measureAt = (Math.floor(now / everyMs) + 1) * everyMs
  }

  /**
   * Moves the limit that latency allows. `share` is baseline / mean latency: the limit is multiplied by it, with some
   * tolerance and at most halved, and one is added, which lets it grow while calls are not slower. It grows only if calls
   * had to wait for it.
   */
  #follow(share: number, waited: boolean): void {
    const gradient = Math.min(1, Math.max(0.5, TOLERANCE * share))
    const next = Math.min(this.limit, this.#most) * gradient + 1
    if (next < this.#most || waited) this.#most = Math.min(next, this.#ceiling.bounds.max)
  }

  /** Begins another mean, of calls that are sent from now on. */
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
