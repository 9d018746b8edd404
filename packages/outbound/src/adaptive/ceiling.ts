import type { AdaptReason } from '@sluice/core'

/** The bounds of a limit that nobody knows, and where its search begins. Each process searches by itself, for each key. */
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
 * A limit that goes up until calls are refused, and then stays where they were not. From there it looks up: a step that is
 * taken back at the first refusal, kept if there is none. Steps begin large, shrink to `LOOK` as they fail, and grow again as
 * they succeed. Looks of that size come ever more rarely. A refusal outside a look may be due to the look of another process,
 * so only the second in a row lowers the limit, and each further pair lowers it more.
 */
export class Ceiling {
  limit: number
  /** The limit before a look; undefined outside looks. */
  #base: number | undefined
  /** The next look, as a share of the limit, and when it may begin. */
  #look = LARGEST_LOOK
  #lookAt = 0
  /** Windows between looks. */
  #lookEvery = FIRST_PAUSE
  #refusals = 0
  #refusedAt = -Infinity
  #since: number
  #served = 0

  /** `now` is in milliseconds. */
  constructor(
    readonly bounds: AdaptiveOptions,
    readonly measure: Measure,
    readonly now: () => number,
  ) {
    this.limit = bounds.initial
    this.#since = now()
  }

  /**
   * Takes account of an attempt that took `ms` milliseconds until now, and `units` of a rate; 1 of a number of calls at once.
   * Returns why the limit has changed; undefined if it has not.
   */
  ended(ms: number, refused: boolean, units: number): AdaptReason | undefined {
    const now = this.now()
    const base = this.#base
    // It went out under another limit and says nothing about this one.
    if (now - ms < this.#since) return undefined
    if (refused) return base === undefined ? this.#refused(now) : this.#lookFailed(base, now)
    this.#served += units
    // The refusal that a small look causes may go to another process, and the longer the look, the less likely for long.
    const rounds = base !== undefined && this.#look <= SMALL_LOOK ? SMALL_LOOK_ROUNDS : 1
    if (!this.measure.isProven(this.limit, this.#served, (now - this.#since) / rounds)) return undefined
    if (base !== undefined) this.#lookSucceeded(now)
    const isLook = now >= this.#lookAt
    this.#base = isLook ? this.limit : undefined
    return this.#change(isLook ? this.#look : 0, 'served', now)
  }

  /** The limit of the look is one that is served, and the next step is larger. */
  #lookSucceeded(now: number): void {
    this.#look = Math.min(LARGEST_LOOK, 1.25 * this.#look)
    this.#lookEvery = Math.max(FIRST_PAUSE, this.#lookEvery / 2)
    if (this.#look <= SMALL_LOOK) this.#pause(this.#lookEvery, now)
  }

  /** Takes the step back. The next one is smaller, or comes later. */
  #lookFailed(base: number, now: number): AdaptReason | undefined {
    this.#base = undefined
    if (this.#look > LOOK) this.#pause(SHORT_PAUSE, now)
    else this.#pause((this.#lookEvery = Math.min(2 * this.#lookEvery, LONGEST_PAUSE)), now)
    this.#look = Math.max(LOOK, this.#look / 4)
    return this.#set(base, 'refused', now)
  }

  /** Outside of looks: every second refusal in a row lowers the limit. */
  #refused(now: number): AdaptReason | undefined {
    if (now - this.#refusedAt > IN_A_ROW * this.measure.windowMs) this.#refusals = 0
    this.#refusedAt = now
    // The limit is another one, and what earlier looks have found says nothing about it.
    if (this.#refusals > 2) this.#lookEvery = FIRST_PAUSE
    this.#look = LOOK
    this.#pause(this.#lookEvery, now)
    const isFirst = ++this.#refusals % 2 === 1
    return this.#change(isFirst ? 0 : -(LOWERED[this.#refusals / 2 - 1] ?? LOWERED.at(-1)!), 'refused', now)
  }

  /** The next look comes after so many windows at the earliest. */
  #pause(windows: number, now: number): void {
    this.#lookAt = now + windows * this.measure.windowMs
  }

  /** Changes the limit by a share of itself. */
  #change(share: number, reason: AdaptReason, now: number): AdaptReason | undefined {
    const step = Math.max(this.measure.step, this.limit * Math.abs(share))
    return this.#set(this.limit + Math.sign(share) * step, reason, now)
  }

  /** Sets a limit within the bounds, and begins to count anew. Returns the reason if it is another one. */
  #set(limit: number, reason: AdaptReason, now: number): AdaptReason | undefined {
    const { min, max } = this.bounds
    const before = this.limit
    this.limit = Math.min(max, Math.max(min, limit))
    this.#since = now
    this.#served = 0
    return this.limit === before ? undefined : reason
  }
}

/** Shares of the limit. */
const [LOOK, SMALL_LOOK, LARGEST_LOOK] = [0.05, 0.1, 0.5]
/** What each pair of refusals in a row takes of the limit. */
const LOWERED: readonly number[] = [0.05, 0.15, 0.25]
/** A small look lasts so many times as long. */
const SMALL_LOOK_ROUNDS = 2.5
/** Windows between looks: while the steps shrink; at first; at most. */
const [SHORT_PAUSE, FIRST_PAUSE, LONGEST_PAUSE] = [3, 12, 240]
/** Refusals are in a row if so many windows or fewer are between them. */
const IN_A_ROW = 5
