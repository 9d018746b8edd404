import type { Penalty } from '@sluice/core/store'

/** The refusals of one key that a penalty counts. */
export class Refusals {
  #count = 0n
  #forgottenAt = 0n

  /** Counts a refusal at `now`. Returns how long the block lasts that it starts, 0 for none. */
  add(now: bigint, { after, block, factor, maxBlock }: Penalty): bigint {
    this.#count = now < this.#forgottenAt ? this.#count + 1n : 1n
    if (this.#count < BigInt(after)) return 0n
    let lasts = block
    for (let n = BigInt(after); n < this.#count; n++) lasts = Math.min(maxBlock, Math.floor(lasts * factor))
    return BigInt(lasts)
  }

  /** The count lasts until `forgetAfter` after the key is full again and its block over. */
  keep(resetAt: number, { forgetAfter }: Penalty): void {
    this.#forgottenAt = BigInt(resetAt) + BigInt(forgetAfter)
  }

  reset(): void {
    this.#count = this.#forgottenAt = 0n
  }
}
