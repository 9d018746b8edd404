/**
 * The store's clock as this process sees it. An answer holds the store's time at its decision, which lies somewhere between
 * sending the call and receiving the answer. The answer with the shortest way back tells most precisely; so an answer that was
 * received late because this process was busy delays no turn.
 */
export class StoreClock {
  /** The smallest difference in this period between the local instant of an answer's receipt and the store's time in it. */
  #smallestOffset = Infinity
  /** That of the period before. */
  #smallestBefore = Infinity
  #periodStart = -Infinity

  /** Remembers a difference for one to two periods of `periodUs` microseconds, in which the clocks must not drift apart. */
  constructor(private readonly periodUs = 1_000_000) {}

  /**
   * Converts `at`, an instant on the store's clock, to this process's clock, in microseconds. The answer that names it was decided
   * at `now` on the store's clock, and asked for at `sent` and received at `received` on this process's. `received - now` is the
   * difference of the clocks and the time of the answer's way back, so the smallest of the last two periods is the best estimate of
   * the difference. It is too large by the time of that way back, so the result is never early, as long as both clocks run at the
   * same speed.
   */
  toLocal(at: number, now: number, sent: number, received: number): number {
    const { periodUs } = this
    const sincePeriodStart = received - this.#periodStart
    if (sincePeriodStart >= periodUs) {
      const wasPeriodJustBefore = sincePeriodStart < 2 * periodUs
      this.#smallestBefore = wasPeriodJustBefore ? this.#smallestOffset : Infinity
      this.#smallestOffset = Infinity
      this.#periodStart = received
    }
    this.#smallestOffset = Math.min(this.#smallestOffset, received - now)
    const decidedAt = now + Math.min(this.#smallestOffset, this.#smallestBefore)
    // After a clock was set, the remembered offset is wrong. That it was decided between `sent` and `received` still holds.
    return at - now + Math.max(sent, Math.min(received, decidedAt))
  }
}
