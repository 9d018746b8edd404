import { nowMs } from '../values/clock.js'

/**
 * Counts calls that were sent and have no outcome, including those whose caller has stopped waiting. It is bounded, because
 * clients queue without limit what they cannot send. A call without an outcome for a minute counts as lost: some clients
 * never settle a call after its connection broke.
 */
export class InFlight {
  /** The oldest first. Single calls are not recorded: that costs more than the precision is worth. */
  #cohorts: Cohort[] = []
  count = 0

  /**
   * Allows `most` calls in flight, that is sent and not answered yet. `now` returns milliseconds of a clock that does not run
   * back.
   */
  constructor(
    private readonly most: number,
    private readonly now = nowMs,
  ) {}

  /**
   * How many more calls may be sent; 0 or less for none. Where there is no room, calls that got no answer for a minute are first
   * counted as lost, as some clients never settle a call after its connection broke.
   */
  get room(): number {
    if (this.count >= this.most) this.dropLost()
    return this.most - this.count
  }

  /**
   * Counts `calls` calls that are sent at `now`, in milliseconds, to the cohort of all calls of about that second. A record for
   * each call would cost more than the precision is worth. Pass the returned cohort to `end` once they are answered or have
   * failed. A new cohort begins a second after the last, and empty ones are dropped then.
   */
  begin(now: number, calls = 1): Cohort {
    let cohort = this.#cohorts.at(-1)
    if (!cohort || now - cohort.since >= COHORT_MS) {
      cohort = { since: now, latest: now, calls: 0, isLost: false }
      this.#cohorts = [...this.#cohorts.filter((each) => each.calls > 0), cohort]
    }
    cohort.latest = now
    cohort.calls += calls
    this.count += calls
    return cohort
  }

  /**
   * Counts `calls` calls of a cohort (the calls sent within one second) as answered or failed. Returns false if they had been
   * counted as lost before, so that their room was free already.
   */
  end(cohort: Cohort, calls = 1): boolean {
    cohort.calls -= calls
    if (!cohort.isLost) this.count -= calls
    return !cohort.isLost
  }

  /**
   * Counts the calls of cohorts whose latest call was sent a minute ago or earlier as lost, so that they no longer take up room.
   * A cohort is the calls sent within one second; the oldest comes first.
   */
  dropLost(): void {
    const lost = this.now() - LOST_MS
    for (let oldest = this.#cohorts[0]; oldest && oldest.latest <= lost; oldest = this.#cohorts[0]) {
      this.count -= oldest.calls
      oldest.isLost = true
      this.#cohorts.shift()
    }
  }
}

/** Calls that were sent within one second. */
export interface Cohort {
  readonly since: number
  latest: number
  calls: number
  isLost: boolean
}

const LOST_MS = 60_000
const COHORT_MS = 1000
