// Every contender of a framework in a process of its own, in turns.
import { inGroups } from '../../figures/groups.js'
import { startChild } from '../../processes/child.js'
import { HAND_WRITTEN, SLUICE } from '../modes.js'
import { named, setups } from '../setups.js'

/** @typedef {{ allowedUs: number, deniedUs: number }} Turn CPU a request, in microseconds. */
/** @typedef {readonly Map<string, Turn[]>[]} Turns By group of processes and contender. */

const module = new URL('process.js', import.meta.url)
const ROUND_MS = 48
const ROUNDS_OF_GROUP = 6
/** Of each contender in a round, in turns: what disturbs the machine for longer disturbs all of them. */
const TURNS = 8

/**
 * @param {string} framework
 * @param {readonly string[]} names
 * @param {number} rounds
 * @returns {Promise<Turns>}
 */
export async function measureInProcess(framework, names, rounds) {
  for (const setup of setups) {
    const [handWritten, sluice] = [named(HAND_WRITTEN, setup), named(SLUICE, setup)]
    if (names.includes(handWritten)) await checkAnswers(framework, handWritten, sluice)
  }
  const groups = await inGroups(names, {
    start: (name) => startChild(module, [framework, name]),
    warmUp: (child) => child.ask({}),
    turn: (child, requests) => child.ask({ requests }),
    roundMs: ROUND_MS / TURNS,
    roundsOfGroup: ROUNDS_OF_GROUP * TURNS,
    rounds: rounds * TURNS,
  })
  return groups.map((group) => new Map([...group].map(([name, turns]) => [name, roundsOf(turns)])))
}

/** The mean of the turns of each round. @param {readonly Turn[]} turns */
function roundsOf(turns) {
  const mean = (/** @type {number} */ round, /** @type {keyof Turn} */ figure) =>
    turns.slice(round * TURNS, (round + 1) * TURNS).reduce((sum, turn) => sum + turn[figure] / TURNS, 0)
  return Array.from({ length: turns.length / TURNS }, (_, round) => ({
    allowedUs: mean(round, 'allowedUs'),
    deniedUs: mean(round, 'deniedUs'),
  }))
}

/**
 * Contenders whose cost is compared must do the same work: the same headers, and the same text.
 * @param {string} framework
 * @param {string} handWritten
 * @param {string} sluice
 */
async function checkAnswers(framework, handWritten, sluice) {
  const [theirs, ours] = [await answersOf(framework, handWritten), await answersOf(framework, sluice)]
  for (const request of ['allowed', 'denied'])
    if (theirs[request] !== ours[request])
      throw new Error(
        `${framework}, ${request}: ${handWritten} answers\n${theirs[request]}\nand ${sluice}\n${ours[request]}`,
      )
}

/** @param {string} framework @param {string} name */
async function answersOf(framework, name) {
  const child = startChild(module, [framework, name])
  try {
    return await child.ask({ check: true })
  } finally {
    await child.stop()
  }
}
