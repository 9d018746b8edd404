// Every contender of a framework in a process of its own, in turns.
import { inGroups } from '../../figures/groups.js'
import { startChild } from '../../processes/child.js'
import { checkAlike } from '../alike.js'
import { BARE, HAND_WRITTEN, SLUICE } from '../modes.js'

/** @typedef {{ allowedUs: number, deniedUs: number }} Turn CPU a request, in microseconds. */
/** @typedef {readonly Map<string, Turn[]>[]} Turns By group of processes and contender. */

const module = new URL('process.js', import.meta.url)
const ROUND_MS = 60
const ROUNDS_OF_GROUP = 4

/**
 * @param {string} framework
 * @param {string} peer
 * @param {number} rounds
 * @returns {Promise<Turns>}
 */
export async function measureInProcess(framework, peer, rounds) {
  await checkAnswers(framework)
  return inGroups([BARE, HAND_WRITTEN, SLUICE, peer], {
    start: (name) => startChild(module, [framework, name]),
    warmUp: (child) => child.ask({}),
    turn: (child, requests) => child.ask({ requests }),
    roundMs: ROUND_MS,
    roundsOfGroup: ROUNDS_OF_GROUP,
    rounds,
  })
}

/** Whether those whose cost is compared give the same answers. @param {string} framework */
async function checkAnswers(framework) {
  const answers = []
  for (const name of [HAND_WRITTEN, SLUICE]) {
    const child = startChild(module, [framework, name])
    try {
      answers.push(await child.ask({ check: true }))
    } finally {
      await child.stop()
    }
  }
  const [handWritten, sluice] = answers
  for (const mode of ['allowed', 'denied'])
    checkAlike(`${framework}, ${mode}`, handWritten[mode], sluice[mode])
}
