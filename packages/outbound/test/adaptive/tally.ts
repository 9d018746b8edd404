/** What became of a simulated fleet in one part of its time. */
export interface Figures {
  /** Of what the provider would have served. */
  readonly used: number
  /** Of the calls that were sent. */
  readonly refused: number
  /** Milliseconds from sending to the answer, of calls that were served: the mean. */
  readonly latencyMs: number
}

/** Counts what becomes of calls. */
export class Tally {
  #served = 0
  #refused = 0
  #latencyMs = 0

  served(latencyMs: number): void {
    this.#served++
    this.#latencyMs += latencyMs
  }

  refused(): void {
    this.#refused++
  }

  /** The figures since the last ones; `used` of what could be served, by default the calls. */
  take(could: number, used = this.#served): Figures {
    const [served, refused, latencyMs] = [this.#served, this.#refused, this.#latencyMs]
    this.#served = this.#refused = this.#latencyMs = 0
    return { used: used / could, refused: refused / (served + refused), latencyMs: latencyMs / served }
  }
}
