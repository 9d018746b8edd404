/**
 * Blocks for keys that go on calling after they were refused. Durations are microseconds.
 *
 * A refusal counts if a `consume` or a `book` of a cost above 0 is refused with the reason 'limit'. From the refusal number
 * `after` on, each one blocks the key, and answers with the end of the block in `at`. The count is forgotten `forgetAfter` after
 * the key is full again and its block is over, as of the last counted refusal, and by a reset.
 */
export interface Penalty {
  /** Refusals up to the first block, counting the one that starts it. */
  readonly after: number
  /** The first block. */
  readonly block: number
  /** Factor by which each block is longer than the last. */
  readonly factor: number
  /** The longest block. */
  readonly maxBlock: number
  readonly forgetAfter: number
  /**
   * The step that starts a block clears what was consumed, as if the state began at that instant: charges of before give nothing
   * back, and bookings that lie ahead are lost. The block, the hold and the count stay. Without it the window goes on.
   */
  readonly then?: 'fresh'
}

/**
 * Returns the length in microseconds of the block that refusal number `refusals` starts, which is at least `after`: the first
 * block is `block` long, and each further one longer by `factor`, up to `maxBlock`. Its twin is in lua/penalty.lua, and both must
 * give the same number, so each block is rounded down.
 */
export function blockOf({ after, block, factor, maxBlock }: Penalty, refusals: number): number {
  let length = block
  // Powers differ by platform in their last digit, products do not.
  for (let more = refusals - after; more > 0 && length < maxBlock; more--) {
    const longer = Math.min(maxBlock, Math.floor(length * factor))
    if (longer === length) break
    length = longer
  }
  return length
}
