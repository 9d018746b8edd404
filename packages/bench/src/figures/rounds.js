// Noise is met by turns: in every round each contender is measured once, forwards and backwards, and what counts is the
// median of the ratios that the rounds gave, so that what disturbs a round disturbs both sides of its ratio.

/**
 * Lets everyone take a turn in each round. The first round warms up and is dropped where `warmUp` is set.
 * @template T
 * @param {readonly string[]} names
 * @param {{ rounds: number, warmUp?: boolean }} options
 * @param {(name: string) => Promise<T>} turn
 * @returns {Promise<Map<string, T[]>>} what each gave, one value a round
 */
export async function inRounds(names, { rounds, warmUp = false }, turn) {
  const given = new Map(names.map((name) => [name, /** @type {T[]} */ ([])]))
  for (let round = warmUp ? -1 : 0; round < rounds; round++) {
    for (const name of round % 2 ? names.toReversed() : names) {
      const value = await turn(name)
      if (round >= 0) given.get(name)?.push(value)
    }
  }
  return given
}

/** @param {readonly number[]} values */
export function median(values) {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? NaN
  return sorted.length % 2 ? upper : ((sorted[middle - 1] ?? NaN) + upper) / 2
}

/**
 * Of each round, what one had to what the other had.
 * @param {readonly number[]} some
 * @param {readonly number[]} others
 */
export function ratios(some, others) {
  return some.map((value, round) => value / (others[round] ?? NaN))
}

/** How far the middle half of the values lies apart, to their median. @param {readonly number[]} values */
export function spread(values) {
  const sorted = values.toSorted((a, b) => a - b)
  const at = (/** @type {number} */ part) => sorted[Math.round((sorted.length - 1) * part)] ?? NaN
  return (at(0.75) - at(0.25)) / Math.abs(median(values))
}
