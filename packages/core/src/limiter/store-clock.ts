/**
 * The store's clock as this process sees it. An answer holds the store's time at its decision, which lies somewhere between
 * sending the call and receiving the answer. The answer with the shortest way back is the most precise one, so an answer
 * that was received late because this process was busy delays no turn.
 */
export class StoreClock {
  /** The smallest difference between the local instant of an answer's receipt and the store's time in it. */
  #offset = Infinity
  #previousOffset = Infinity
  #since = -Infinity

  /**
   * The local instant, in microseconds, of the store's instant `at`. It comes from an answer that was decided at `now`,
   * sent for at `sent` and received at `received`. It is not early, as long as both clocks run at the same speed.
   */
  toLocal(at: number, now: number, sent: number, received: number): number {
    if (received - this.#since >= REMEMBERED_US) {
      this.#previousOffset = received - this.#since < 2 * REMEMBERED_US ? this.#offset : Infinity
      this.#offset = Infinity
      this.#since = received
    }
    this.#offset = Math.min(this.#offset, received - now)
    const decidedAt = now + Math.min(this.#offset, this.#previousOffset)
    // After a clock was set, the remembered offset is wrong. These bounds still hold.
    return at - now + Math.max(sent, Math.min(received, decidedAt))
  }
}

/** Short enough for clocks not to drift apart meanwhile. */
const REMEMBERED_US = 1_000_000
