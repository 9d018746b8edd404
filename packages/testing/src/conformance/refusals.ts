import type { Penalty } from '@sluice/core/store'

/** The refusals of one key that a penalty counts. */
export class Refusals {
  #count = 0n
  /** The instant, in microseconds, from which on the count is forgotten. */
  #forgottenAt = 0n

  /**
   * Counts a refusal at `now`. Returns for how many microseconds the key is blocked for it: 0 below `after` refusals, then
   * `block`, and `factor` times as long with each further one, up to `maxBlock`. Where the count was forgotten by now, this
   * refusal is the first of a new one.
   */
  add(now: bigint, { after, block, factor, maxBlock }: Penalty): bigint {
    this.#count = now < this.#forgottenAt ? this.#count + 1n : 1n
    if (this.#count < BigInt(after)) return 0n
    let lasts = block
    for (let n = BigInt(after); n < this.#count; n++) lasts = Math.min(maxBlock, Math.floor(lasts * factor))
    return BigInt(lasts)
  }

  /**
   * Keeps the count until `forgetAfter` microseconds after `resetAt`, the instant at which the key is full again and its block
   * over.
   */
  keep(resetAt: number, { forgetAfter }: Penalty): void {
    this.#forgottenAt = BigInt(resetAt) + BigInt(forgetAfter)
  }

  /** Forgets all refusals, as the key was reset. */
  reset(): void {
    this.#count = this.#forgottenAt = 0n
  }
}
