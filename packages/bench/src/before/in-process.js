// Both builds on paths that need no server: nanoseconds of CPU a call.
import { temporaryFolder } from '../../../../scripts/temporary-folder.js'
import { inGroups } from '../figures/groups.js'
import { startChild } from '../processes/child.js'
import { httpPaths, machinePaths, queuePaths } from './call-paths.js'
import { memoryPaths } from './memory-paths.js'
import { rowOf, SIDES } from './rows.js'

/** @typedef {import('./rows.js').Run} Run */

const ROUND_MS = 50
/** Few, since processes differ by more than rounds do. */
const ROUNDS_OF_GROUP = 3

const calls = new URL('calls-side.js', import.meta.url)
export const inMemory = measureIn(new URL('memory-side.js', import.meta.url), memoryPaths)
export const onMachine = measureIn(calls, machinePaths)
export const queued = measureIn(calls, queuePaths)
export const overHttp = measureIn(calls, httpPaths)

/**
 * @param {URL} module What each build runs, in processes of its own.
 * @param {object} paths By name.
 */
function measureIn(module, paths) {
  return async (/** @type {Run} */ { roots, rounds, wanted, say }) => {
    const rows = []
    for (const path of Object.keys(paths).filter(wanted)) {
      const pairs = await inGroups(SIDES, {
        start: (side) => startChild(module, [roots[side], path, temporaryFolder('before')]),
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
}
