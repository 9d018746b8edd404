import type { AdaptiveOptions } from '../../src/index.js'

/** Plain additive increase, multiplicative decrease: one more after `limit` calls that were served, a fifth less at a refusal. */
export class Aimd {
  limit: number
  #changedAt = 0

  constructor(
    readonly bounds: AdaptiveOptions,
    readonly now: () => number,
  ) {
    this.limit = bounds.initial
  }

  ended(ms: number, refused: boolean): void {
    const { min, max } = this.bounds
    if (!refused) this.limit = Math.min(max, this.limit + 1 / this.limit)
    else if (this.now() - ms >= this.#changedAt) {
      this.limit = Math.max(min, 0.8 * this.limit)
      this.#changedAt = this.now()
    }
  }
}
