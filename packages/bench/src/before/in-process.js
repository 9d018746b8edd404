// Both builds on paths that need no server: nanoseconds of CPU a call.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inGroups } from '../figures/groups.js'
import { startChild } from '../processes/child.js'
import { machinePaths, queuePaths } from './call-paths.js'
import { memoryPaths } from './memory-paths.js'
import { rowOf, SIDES } from './rows.js'

/** @typedef {import('./rows.js').Run} Run */

const ROUND_MS = 50
/** Few, since processes differ by more than rounds do. */
const ROUNDS_OF_GROUP = 3

export const inMemory = measureIn('memory-side.js', memoryPaths)
export const onMachine = measureIn('calls-side.js', machinePaths)
export const queued = measureIn('calls-side.js', queuePaths)

/**
 * @param {string} side The module that each build runs, in processes of its own.
 * @param {object} paths By name.
 */
function measureIn(side, paths) {
  const module = new URL(side, import.meta.url)
  return async (/** @type {Run} */ { roots, rounds, wanted, say }) => {
    const rows = []
    const folders = mkdtempSync(join(tmpdir(), 'sluice-before-sockets-'))
    const folder = () => mkdtempSync(join(folders, 'of-'))
    try {
      for (const path of Object.keys(paths).filter(wanted)) {
        const pairs = await inGroups(SIDES, {
          start: (side) => startChild(module, [roots[side], path, folder()]),
          warmUp: (child) => child.ask({}),
          turn: (child, calls) => child.ask({ calls }),
          roundMs: ROUND_MS,
          roundsOfGroup: ROUNDS_OF_GROUP,
          rounds,
        })
        rows.push(rowOf(path, 'ns', pairs, (nanoseconds) => nanoseconds))
        say(`${path}: measured`)
      }
    } finally {
      rmSync(folders, { recursive: true })
    }
    return rows
  }
}
