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
  #pause = 0
  /** When the next trial may begin. */
  #trialAt = 0
  /** The last refusal outside a trial that has not lowered the limit. */
  #refusedAt = -Infinity
  #since: number
  #served = 0

  /**
   * Begins the search for the limit of another side, a rate or a number of calls at once, with `bounds.initial`. `measure` says
   * when so much was served under a limit, without a refusal, that the other side is believed to serve that limit. For this
   * `#since` keeps when the present limit was set, and `#served` the units served since. `now` is the clock, in milliseconds.
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
   * Takes account of an attempt that took `ms` milliseconds until now, and raises or lowers the limit by it. `units` is its cost
   * for a rate, and 1 for a limit of calls at once. Once enough units were served to prove the present limit (`isProven`), a
   * trial of a higher one begins if it is due (`#trialAt`). Before the first refusal a trial raises the limit by half. Later it
   * raises it by 5 %, and a rate has to be in use four times as long until it is proven, because the refusal that a small trial
   * causes may go to another process. Returns why the limit may have changed; undefined if it has not, also for an attempt that
   * began before its last change.
   */
  ended(ms: number, refused: boolean, units: number): AdaptReason | undefined {
    const now = this.now()
    // It went out under another limit and says nothing about this one.
    if (now - ms < this.#since) return undefined
    if (refused) {
      this.#refused(now)
      return 'refused'
    }
    this.#served += units
    const [step, rounds] = this.#pause === 0 ? [FIRST_TRIAL, 1] : [TRIAL, TRIAL_ROUNDS]
    if (!this.measure.isProven(this.limit, this.#served, (now - this.#since) / rounds)) return undefined
    // The limit is proven, and with it a trial that has led to it. The next trial begins, or the count begins anew.
    if (this.#beforeTrial !== undefined) this.#pauseFor(this.#pause / 2, now)
    this.#beforeTrial = now >= this.#trialAt ? this.limit : undefined
    this.#change(this.#beforeTrial === undefined ? 0 : step, now)
    return 'served'
  }

  /**
   * Takes account of a refusal at the instant `now`, and doubles the time to the next trial of a higher limit. During a trial the
   * limit goes back to that before it (`#beforeTrial`). Outside of trials every second refusal in a row, within five windows of
   * the first, lowers the limit by a tenth; a single one may be due to the trial of another process.
   */
  #refused(now: number): void {
    const before = this.#beforeTrial
    this.#beforeTrial = undefined
    this.#pauseFor(Math.max(FIRST_PAUSE, 2 * this.#pause), now)
    if (before !== undefined) return this.#set(before, now)
    const isSecond = now - this.#refusedAt <= IN_A_ROW * this.measure.windowMs
    this.#refusedAt = isSecond ? -Infinity : now
    this.#change(isSecond ? -LOWERED : 0, now)
  }

  /**
   * Has the next trial of a higher limit begin no earlier than so many windows after `now`, in milliseconds. A trial that fails
   * costs a refusal. Therefore the callers double this pause after each refusal, and halve it after a trial that succeeds. It is
   * at most 240 windows (`LONGEST_PAUSE`), so that the search finds out in the end when the other side allows more.
   */
  #pauseFor(windows: number, now: number): void {
    this.#pause = Math.min(windows, LONGEST_PAUSE)
    this.#trialAt = now + this.#pause * this.measure.windowMs
  }

  /**
   * Raises the limit by a share of itself, or lowers it by a negative one such as -0.1, at least by the smallest step. A share of
   * 0 leaves the limit as it is, but has the units that are served under it counted anew from `now` on.
   */
  #change(share: number, now: number): void {
    const step = Math.max(this.measure.step, this.limit * Math.abs(share))
    this.#set(this.limit + Math.sign(share) * step, now)
  }

  /** Sets the limit, cut to the bounds, and counts the units that are served under it from `now` on, in milliseconds. */
  #set(limit: number, now: number): void {
    const { min, max } = this.bounds
    this.limit = Math.min(max, Math.max(min, limit))
    this.#since = now
    this.#served = 0
  }
}

/** Shares of the limit: of the trials before and after the first refusal, and what the second refusal in a row takes. */
const [FIRST_TRIAL, TRIAL, LOWERED] = [0.5, 0.05, 0.1]
/** A small trial lasts so many times as long: the refusal that it causes may go to another process. */
const TRIAL_ROUNDS = 4
/** Windows between trials: after the first that fails, and at most. */
const [FIRST_PAUSE, LONGEST_PAUSE] = [12, 240]
/** Refusals are in a row if so many windows or fewer are between them. */
const IN_A_ROW = 5
