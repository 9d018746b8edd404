// Contenders in one process disturb each other's compiled code, so each has a process of its own. What the compiler decides
// differs from process to process and then stays: a single pair of processes finds two equal builds 5 to 15 % apart in most
// of its rounds. So the rounds are spread over several groups of processes.
import { inRounds } from './rounds.js'

/** @typedef {import('../processes/child.js').Child} Child */

/**
 * @template T
 * @template {string} Name
 * @typedef {object} Comparison
 * @property {(name: Name) => Child} start
 * @property {(child: Child) => Promise<number>} warmUp Gives nanoseconds a call.
 * @property {(child: Child, calls: number) => Promise<T>} turn
 * @property {number} roundMs What a turn of the fastest takes, about.
 * @property {number} rounds At least, in all.
 * @property {number} roundsOfGroup After which everyone gets a new process.
 */

/**
 * Everyone takes turns of equally many calls, in the other order in every other round and in every other group.
 * @template T
 * @template {string} Name
 * @param {readonly Name[]} names
 * @param {Comparison<T, Name>} comparison
 * @returns {Promise<Map<string, T[]>[]>} for each group what each gave, one value a round
 */
export async function inGroups(names, { start, warmUp, turn, roundMs, rounds, roundsOfGroup }) {
  const given = []
  for (let group = 0; group * roundsOfGroup < rounds; group++) {
    const children = new Map((group % 2 ? names.toReversed() : names).map((name) => [name, start(name)]))
    try {
      let fastest = Infinity
      for (const child of children.values()) fastest = Math.min(fastest, await warmUp(child))
      const calls = Math.ceil((roundMs * 1e6) / fastest)
      const take = (/** @type {string} */ name) =>
        turn(/** @type {Child} */ (children.get(/** @type {Name} */ (name))), calls)
      given.push(await inRounds([...children.keys()], { rounds: roundsOfGroup }, take))
    } finally {
      for (const child of children.values()) await child.stop()
    }
  }
  return given
}
