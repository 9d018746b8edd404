/** How long one caller is locked out: from the first of denials in a row until the last of them would have passed. */
export class LockOut {
  /** In microseconds; Infinity for a cost that never passes. */
  longest = 0
  #since = -1

  allowed(): void {
    this.#since = -1
  }

  /** `until` is when the call would pass. The wait is rounded up to milliseconds, as decisions report it. */
  denied(at: number, until: number): void {
    if (this.#since < 0) this.#since = at
    const length = at - this.#since + Math.ceil((until - at) / 1000) * 1000
    if (length > this.longest) this.longest = length
  }

  begin(): void {
    this.longest = 0
    this.#since = -1
  }
}

/** Milliseconds for a report; null for ever. */
export function lockOutMs(us: number): number | null {
  return us === Infinity ? null : Math.ceil(us / 1000)
}
