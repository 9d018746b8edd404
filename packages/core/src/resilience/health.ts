import type { StoreFailure } from '../values/errors.js'
import type { Report } from '../stores/store.js'

/** Tells a limiter's listeners when its store stops deciding and when it does again, once each. */
export class Health {
  readonly #report: Report
  readonly #now: () => number
  #reason: StoreFailure | undefined
  #decisions = 0
  #lastAt = 0

  /** `now` in milliseconds, of a clock that does not run back. */
  constructor(report: Report, now = (): number => performance.now()) {
    this.#report = report
    this.#now = now
  }

  degraded(reason: StoreFailure): void {
    this.#lastAt = this.#now()
    this.#decisions++
    if (this.#reason !== undefined) return
    this.#reason = reason
    this.#report({ event: 'degraded', reason })
  }

  decided(): void {
    if (this.#reason === undefined || this.#now() - this.#lastAt < QUIET_MS) return
    this.#report({ event: 'recovered', reason: this.#reason, decisions: this.#decisions })
    this.#reason = undefined
    this.#decisions = 0
  }
}

/**
 * Milliseconds without a degraded decision before a store counts as recovered. Where only some calls fail, those of
 * one node or those that write, this is one change and not thousands.
 */
const QUIET_MS = 100
