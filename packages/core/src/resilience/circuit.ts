/**
 * A circuit breaker. It opens when a store fails again and again, and then nobody is asked to wait for it. While it is
 * open the store is probed now and then, beside the calls and not with them; one answer in time closes it.
 *
 * Single failures do not open it, nor do those of one node of a Cluster as long as others answer in between.
 */
export class Circuit<Failure> {
  readonly #now: () => number
  readonly #random: () => number
  #failures = 0
  #failingSince = 0
  #open: Failure | undefined
  #probeAt = 0

  /** `now` in milliseconds, of a clock that does not run back; `random` from 0 to 1. */
  constructor(now = (): number => performance.now(), random = Math.random) {
    this.#now = now
    this.#random = random
  }

  /** The latest failure, while the circuit is open. */
  get open(): Failure | undefined {
    return this.#open
  }

  succeeded(): void {
    this.#failures = 0
    this.#open = undefined
  }

  /** A call failed that would have been waited for `deadlineMs` milliseconds. */
  failed(failure: Failure, deadlineMs: number): void {
    const now = this.#now()
    if (this.#failures++ === 0) this.#failingSince = now
    if (this.#open !== undefined) this.#open = failure
    else if (this.#failures >= FAILURES && now - this.#failingSince >= 2 * deadlineMs) {
      this.#open = failure
      this.#probeAt = now + this.#pause()
    }
  }

  /** Whether it is time for a probe: true once a while, at random so that a fleet does not come in one moment. */
  isProbeDue(): boolean {
    const now = this.#now()
    if (now < this.#probeAt) return false
    this.#probeAt = now + this.#pause()
    return true
  }

  #pause(): number {
    return PROBE_MS * (0.5 + this.#random() / 2)
  }
}

/**
 * Failures in a row that open the circuit, if they go on for two deadlines: long enough for those who got an answer from
 * another node to come again.
 */
const FAILURES = 5

/**
 * The longest between two probes, in milliseconds. With up to 200 ms until a connection is made again (back-off.ts), a
 * store decides again well within half a second after it is back.
 */
const PROBE_MS = 100
