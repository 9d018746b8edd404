// Both builds on every path in memory: nanoseconds of CPU a call.
import { startChild } from '../processes/child.js'
import { memoryPaths } from './memory-paths.js'
import { inGroups } from '../figures/groups.js'
import { rowOf, SIDES } from './rows.js'

/** @typedef {import('./rows.js').Run} Run */

const module = new URL('memory-side.js', import.meta.url)
const ROUND_MS = 50
/** Few, since processes differ by more than rounds do. */
const ROUNDS_OF_GROUP = 3

/** @param {Run} run */
export async function inMemory({ roots, rounds, wanted, say }) {
  const rows = []
  for (const path of Object.keys(memoryPaths).filter(wanted)) {
    const pairs = await inGroups(SIDES, {
      start: (side) => startChild(module, [roots[side], path]),
      warmUp: (child) => child.ask({}),
      turn: (child, calls) => child.ask({ calls }),
      roundMs: ROUND_MS,
      roundsOfGroup: ROUNDS_OF_GROUP,
      rounds,
    })
    rows.push(rowOf(path, 'ns', pairs, (nanoseconds) => nanoseconds))
    say(`${path}: measured`)
  }
  return rows
}
