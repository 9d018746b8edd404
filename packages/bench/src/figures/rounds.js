// Noise is met by turns: in every round each contender is measured once, forwards and backwards, and what counts is the
// median of the ratios that the rounds gave, so that what disturbs a round disturbs both sides of its ratio.
import { median } from '@sluice/harness/figures'

/** @typedef {{ rounds: number, warmUp?: boolean, often?: (name: string) => boolean }} Turns */

/** A contender that no verdict needs takes a turn in every fourth round. */
const SELDOM = 4

/**
 * Lets everyone take a turn in each round. The first round warms up and is dropped where `warmUp` is set. With `often`, the
 * others take fewer turns.
 * @template T
 * @param {readonly string[]} names
 * @param {Turns} turns
 * @param {(name: string) => Promise<T>} turn
 * @returns {Promise<Map<string, T[]>>} what each gave, one value a round
 */
export async function inRounds(names, { rounds, warmUp = false, often = () => true }, turn) {
  const given = new Map(names.map((name) => [name, /** @type {T[]} */ ([])]))
  for (let round = warmUp ? -1 : 0; round < rounds; round++) {
    for (const name of round % 2 ? names.toReversed() : names) {
      if (round % SELDOM > 0 && !often(name)) continue
      const value = await turn(name)
      if (round >= 0) given.get(name)?.push(value)
    }
  }
  return given
}

/**
 * Of each figure the median of the turns.
 * @template {string} Figure
 * @param {readonly Record<Figure, number>[]} turns
 */
export function mediansOf(turns) {
  const figures = /** @type {Figure[]} */ (Object.keys(turns[0] ?? {}))
  const medians = figures.map((figure) => [figure, median(turns.map((turn) => turn[figure]))])
  return /** @type {Record<Figure, number>} */ (Object.fromEntries(medians))
}
