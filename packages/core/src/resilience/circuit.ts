import { nowMs } from '../values/clock.js'

/**
 * A circuit breaker. It opens when a store fails repeatedly, and then no call waits for the store. While it is open, the
 * store is probed now and then, with calls that no caller waits for. One answer in time closes it.
 *
 * Single failures do not open it, nor do those of one Cluster node as long as other nodes answer in between.
 */
export class Circuit<Failure> {
  /** Consecutive failures. */
  failures = 0
  #failingSince = 0
  /** The latest failure, while the circuit is open. */
  open: Failure | undefined = undefined
  #probeAt = 0

  /** Begins closed. `now` returns milliseconds of a clock that does not run back, `random` a number from 0 to 1. */
  constructor(
    readonly now = nowMs,
    readonly random = Math.random,
  ) {}

  /** Notes that the store has answered: closes the circuit, so that calls are sent again, and counts failures from 0 again. */
  succeeded(): void {
    this.failures = 0
    this.open = undefined
  }

  /**
   * Counts a failure of a call whose deadline was `deadlineMs` milliseconds. The circuit opens after five failures without a
   * success in between, if the first was at least two deadlines ago; so one slow moment with many calls does not open it. While it
   * is open, `open` is the latest failure. The first probe (a call that tests the store) is due after a pause.
   */
  failed(failure: Failure, deadlineMs: number): void {
    const now = this.now()
    if (this.failures++ === 0) this.#failingSince = now
    if (this.open !== undefined) this.open = failure
    else if (this.failures >= FAILURES && now - this.#failingSince >= 2 * deadlineMs) {
      this.open = failure
      this.#probeAt = now + this.#pause()
    }
  }

  /**
   * Whether a probe, a call that tests the store, is due now. If so, the caller has to send it: the next one is due only after
   * another pause. Pauses are random, so that the processes of a fleet do not probe at the same time.
   */
  claimProbe(): boolean {
    const now = this.now()
    if (now < this.#probeAt) return false
    this.#probeAt = now + this.#pause()
    return true
  }

  /** Milliseconds until the next probe: a random time between half of the longest one and all of it. */
  #pause(): number {
    return PROBE_MS * (0.5 + this.random() / 2)
  }
}

/**
 * Consecutive failures that open the circuit, if they last for two deadlines. That is long enough for calls to other nodes
 * to succeed in between.
 */
const FAILURES = 5

/**
 * The longest time between two probes, in milliseconds. Reconnecting takes up to 200 ms (opened.ts), so a store decides
 * again well within half a second after it is back.
 */
const PROBE_MS = 100
