// Two copies of a library in one process disturb each other's compiled code, so each build has a process of its own. What
// the compiler decides differs from process to process and then stays: a single pair of processes finds two equal builds
// 5 to 15 % apart in most of its rounds. So the rounds are spread over several pairs.
import { inRounds } from '../figures/rounds.js'

/** @typedef {import('../processes/child.js').Child} Child */
/** @typedef {'this' | 'before'} Side */

/** @type {readonly Side[]} */
const SIDES = ['this', 'before']

/**
 * @template T
 * @typedef {object} Comparison
 * @property {(side: Side) => Child} start
 * @property {(child: Child) => Promise<number>} warmUp Gives nanoseconds a call.
 * @property {(child: Child, calls: number) => Promise<T>} turn
 * @property {number} roundMs What a turn of the faster side takes, about.
 * @property {number} rounds At least, in all.
 * @property {number} roundsOfPair After which both builds get new processes.
 */

/**
 * Both builds take turns of equally many calls, in the other order in every other round and in every other pair.
 * @template T
 * @param {Comparison<T>} comparison
 * @returns {Promise<Map<string, T[]>[]>} for each pair what each side gave, one value a round
 */
export async function inPairs({ start, warmUp, turn, roundMs, rounds, roundsOfPair }) {
  const given = []
  for (let pair = 0; pair * roundsOfPair < rounds; pair++) {
    const children = new Map((pair % 2 ? SIDES.toReversed() : SIDES).map((side) => [side, start(side)]))
    try {
      let fastest = Infinity
      for (const child of children.values()) fastest = Math.min(fastest, await warmUp(child))
      const calls = Math.ceil((roundMs * 1e6) / fastest)
      const take = (/** @type {string} */ side) =>
        turn(/** @type {Child} */ (children.get(/** @type {Side} */ (side))), calls)
      given.push(await inRounds([...children.keys()], { rounds: roundsOfPair }, take))
    } finally {
      for (const child of children.values()) await child.stop()
    }
  }
  return given
}
