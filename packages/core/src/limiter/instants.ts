/**
 * Where the instants of a store lie on the clock of this process. An answer holds the store's time of the moment in
 * which it was decided, somewhere between asking and hearing; the answer that came quickest tells best. So one that was
 * heard late, because this process was busy, delays nobody's turn.
 */
export class Instants {
  #offset = Infinity
  #before = Infinity
  #since = -Infinity

  /**
   * When the store's instant `at` comes, in microseconds on this process's clock, told by an answer that was decided at
   * `now`, asked for at `sent` and heard at `received`. Not early, as long as both clocks run equally fast.
   */
  locally(at: number, now: number, sent: number, received: number): number {
    if (received - this.#since >= REMEMBERED_US) {
      this.#before = received - this.#since < 2 * REMEMBERED_US ? this.#offset : Infinity
      this.#offset = Infinity
      this.#since = received
    }
    this.#offset = Math.min(this.#offset, received - now)
    // A clock that was set makes what is remembered wrong, and then these are the bounds.
    return at - now + Math.max(sent, Math.min(received, now + Math.min(this.#offset, this.#before)))
  }
}

/** Short enough for clocks not to drift apart meanwhile. */
const REMEMBERED_US = 1_000_000
