import type { AdaptReason } from '@sluice/core'

/** The bounds of an unknown limit, and where its search begins. Each process searches by itself, for each key. */
export interface AdaptiveOptions {
  /** The limit never falls below: the least that is of use. */
  readonly min: number
  /** The first limit: one that the other side surely serves. */
  readonly initial: number
  /** The limit never rises above: the most that your side can do. */
  readonly max: number
}

/** How a limit is measured: a rate by time, calls at once by their number. */
export interface Measure {
  /** The smallest step. */
  readonly step: number
  /** The unit of its times, in milliseconds. */
  readonly windowMs: number
  /** Whether a limit is believed under which so many units were served since it was set `ms` ago. */
  isProven(limit: number, served: number, ms: number): boolean
}

/**
 * A limit that goes up until calls are refused, and then stays where they were not. From there it makes trials: a step up
 * that is taken back at the first refusal, kept if there is none. The first steps are large, those after a refusal small.
 * A refusal doubles the time to the next trial, a trial that succeeds halves it. A refusal outside a trial may be due to
 * the trial of another process, so only the second in a row lowers the limit.
 */
export class Ceiling {
  limit: number
  /** The limit before the trial that is under way; undefined while none is. */
  #beforeTrial: number | undefined
  /** Windows from one trial to the next: 0 until calls are refused. */
  #trialDelay = 0
  /** When the next trial may begin. */
  #trialAt = 0
  /** The last refusal outside a trial that has not lowered the limit. */
  #refusedAt = -Infinity
  #since: number
  #served = 0

  /**
   * Begins the search for an unknown limit, a rate or a number of calls at once, with `bounds.initial`. `measure` decides when
   * a limit is proven: when the other side is believed to serve it, by the units that it has served (`#served`) since the limit
   * was set (`#since`). `now` is the clock, in milliseconds.
   */
  constructor(
    readonly bounds: AdaptiveOptions,
    readonly measure: Measure,
    readonly now: () => number,
  ) {
    this.limit = bounds.initial
    this.#since = now()
  }

  /**
   * Raises or lowers the limit by an attempt that took `ms` milliseconds and ended now. `units` is its cost for a rate, and 1
   * for a limit of calls at once. When the served units prove the present limit (`isProven`), a trial of a higher limit begins,
   * if one is due. Before the first refusal a trial raises the limit by half. Later it raises the limit by 5 %, and the proof of
   * a rate takes four times as long, because the refusal that a small trial causes may go to another process. Returns why the
   * limit may have changed; undefined if it has not. An attempt that began before the last change is ignored.
   */
  ended(ms: number, refused: boolean, units: number): AdaptReason | undefined {
    const now = this.now()
    if (now - ms < this.#since) return undefined
    if (refused) {
      this.#refused(now)
      return 'refused'
    }
    this.#served += units
    const wasRefused = this.#trialDelay > 0
    const [share, timesAsLong] = wasRefused ? [LATER_TRIAL, LATER_TRIAL_LASTS] : [FIRST_TRIAL, 1]
    if (!this.measure.isProven(this.limit, this.#served, (now - this.#since) / timesAsLong)) return undefined
    const hasSucceeded = this.#beforeTrial !== undefined
    if (hasSucceeded) this.#delayTrial(this.#trialDelay / 2, now)
    const isDue = now >= this.#trialAt
    this.#beforeTrial = isDue ? this.limit : undefined
    this.#changeBy(isDue ? share : 0, now)
    return 'served'
  }

  /**
   * Lowers the limit after a refusal at the instant `now`, and doubles the time to the next trial of a higher limit. A refusal
   * during a trial ends the trial: the limit becomes what it was before (`#beforeTrial`). Outside of trials a refusal lowers the
   * limit by a tenth if it is the second within five windows. A single one may be due to the trial of another process.
   */
  #refused(now: number): void {
    const beforeTrial = this.#beforeTrial
    this.#beforeTrial = undefined
    this.#delayTrial(Math.max(FIRST_DELAY, 2 * this.#trialDelay), now)
    if (beforeTrial !== undefined) return this.#setLimit(beforeTrial, now)
    const isSecond = now - this.#refusedAt <= IN_A_ROW * this.measure.windowMs
    this.#refusedAt = isSecond ? -Infinity : now // the next one is a first again
    this.#changeBy(isSecond ? -LOWERED : 0, now)
  }

  /**
   * Delays the next trial of a higher limit until so many windows after `now`, an instant in milliseconds. A trial that fails
   * costs a refusal, so callers double the delay after each refusal, and halve it after a trial that succeeds. It is at most 240
   * windows (`LONGEST_DELAY`): the search has to notice in the end that the other side allows more.
   */
  #delayTrial(windows: number, now: number): void {
    this.#trialDelay = Math.min(windows, LONGEST_DELAY)
    this.#trialAt = now + this.#trialDelay * this.measure.windowMs
  }

  /**
   * Raises the limit by a share of itself (0.5: by half), or lowers it by a negative share, at least by the smallest step. A share
   * of 0 leaves the limit as it is, but has the served units counted anew from `now` on.
   */
  #changeBy(share: number, now: number): void {
    const step = Math.max(this.measure.step, this.limit * Math.abs(share))
    this.#setLimit(this.limit + Math.sign(share) * step, now)
  }

  /** Sets the limit, kept between `min` and `max`, and begins to count the units served under it, from 0 at the instant `now`. */
  #setLimit(limit: number, now: number): void {
    const { min, max } = this.bounds
    this.limit = Math.min(max, Math.max(min, limit))
    this.#since = now
    this.#served = 0
  }
}

/** Shares of the limit: of the trials before and after the first refusal, and what the second refusal in a row takes. */
const [FIRST_TRIAL, LATER_TRIAL, LOWERED] = [0.5, 0.05, 0.1]
/** A small trial lasts so many times as long: the refusal that it causes may go to another process. */
const LATER_TRIAL_LASTS = 4
/** Windows between trials: after the first that fails, and at most. */
const [FIRST_DELAY, LONGEST_DELAY] = [12, 240]
/** Refusals are in a row if so many windows or fewer are between them. */
const IN_A_ROW = 5
