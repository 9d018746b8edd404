import type { Penalty } from '@sluice/core/store'

/** The refusals of one key that a penalty counts. */
export class Refusals {
  #count = 0n
  #forgottenAt = 0n

  /** Counts one at `now`. Returns how long the block lasts that it starts, 0 for none. */
  add(now: bigint, { after, block, grow, most }: Penalty): bigint {
    this.#count = now < this.#forgottenAt ? this.#count + 1n : 1n
    if (this.#count < BigInt(after)) return 0n
    let lasts = block
    for (let n = BigInt(after); n < this.#count; n++) lasts = Math.min(most, Math.floor(lasts * grow))
    return BigInt(lasts)
  }

  /** The count lasts until `forget` after the key is full again and its block over. */
  keep(resetAt: number, { forget }: Penalty): void {
    this.#forgottenAt = BigInt(resetAt) + BigInt(forget)
  }

  reset(): void {
    this.#count = this.#forgottenAt = 0n
  }
}
