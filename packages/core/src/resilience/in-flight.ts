/**
 * The number of calls that a store has not answered yet, including those whose caller has stopped waiting. It is bounded,
 * because clients queue without limit what they cannot send. A call without an answer for a minute counts as lost: some
 * clients never settle a call after its connection broke.
 */
export class InFlight {
  readonly #now: () => number
  /** The oldest first. Single calls are not recorded: that costs more than the precision is worth. */
  #cohorts: Cohort[] = []
  #count = 0

  /** `now` in milliseconds, of a clock that does not run back. */
  constructor(now = (): number => performance.now()) {
    this.#now = now
  }

  get count(): number {
    return this.#count
  }

  get isFull(): boolean {
    if (this.#count < MOST_IN_FLIGHT) return false
    const lost = this.#now() - LOST_MS - COHORT_MS
    const [oldest] = this.#cohorts
    if (oldest && oldest.since <= lost) {
      this.#count -= oldest.calls
      oldest.isLost = true
      this.#cohorts.shift()
    }
    return this.#count >= MOST_IN_FLIGHT
  }

  /** Counts a call that began at `since`. Pass the result to `end` once the call is answered or has failed. */
  begin(since: number): Cohort {
    let latest = this.#cohorts.at(-1)
    if (!latest || since - latest.since >= COHORT_MS) {
      latest = { since, calls: 0, isLost: false }
      this.#cohorts = [...this.#cohorts.filter(({ calls }) => calls > 0), latest]
    }
    latest.calls++
    this.#count++
    return latest
  }

  end(cohort: Cohort): void {
    cohort.calls--
    if (!cohort.isLost) this.#count--
  }
}

/** Calls that began within one second. */
export interface Cohort {
  readonly since: number
  calls: number
  isLost: boolean
}

const MOST_IN_FLIGHT = 1000
const LOST_MS = 60_000
const COHORT_MS = 1000
