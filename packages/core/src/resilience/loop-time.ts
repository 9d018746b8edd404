/**
 * What this process takes for itself: the time in which its event loop did not wait for anything. Runtimes that do not
 * measure it count as never busy.
 */
export class LoopTime {
  #idle: number | undefined
  #at = 0

  /** Counts from `now` on, an instant of `performance.now()`. */
  begin(now: number): void {
    this.#idle = idleMs()
    this.#at = now
  }

  /** Milliseconds from the beginning to `now` in which the process was busy. */
  busy(now: number): number {
    const idle = idleMs()
    if (idle === undefined || this.#idle === undefined) return 0
    return Math.max(0, now - this.#at - (idle - this.#idle))
  }
}

function idleMs(): number | undefined {
  const { idle, active } = performance.eventLoopUtilization?.() ?? NOT_MEASURED
  return idle + active > 0 ? idle : undefined
}

const NOT_MEASURED = { idle: 0, active: 0 }
