/** The pauses of one key that the other side asked for, on the clock of `performance.now()`. */
export class KeyPause {
  #until = 0
  #silent = 0
  #isOn = false

  /** Milliseconds until the pause ends. */
  get leftMs(): number {
    return Math.max(0, this.#until - performance.now())
  }

  /** Returns whether this pause ends later than any known before: many replies report the same one. */
  begin(ms: number): boolean {
    const until = performance.now() + ms
    if (until <= this.#until + NEGLIGIBLE_MS) return false
    this.#until = until
    this.#isOn = true
    return true
  }

  /** Milliseconds to pause after a refusal that names no time; doubles with each in a row, up to a minute. */
  silentMs(): number {
    if (this.leftMs > 0) return 0
    const longest = Math.min(LONGEST_SILENT_MS, 1000 * 2 ** this.#silent++)
    return longest * (0.75 + Math.random() / 4)
  }

  /** The other side accepted a call. */
  succeeded(): void {
    this.#silent = 0
  }

  /** Whether this call is the first to go out after a pause; asked once for each call that goes out. */
  resumed(): boolean {
    const resumed = this.#isOn && this.leftMs === 0
    if (resumed) this.#isOn = false
    return resumed
  }
}

const NEGLIGIBLE_MS = 50
const LONGEST_SILENT_MS = 60_000
