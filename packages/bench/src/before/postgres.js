// Both builds on every path over Postgres: decisions a second, with one caller the median latency.
import { startPostgres } from '@sluice/harness/postgres'
import { inGroups } from '../figures/groups.js'
import { startChild } from '../processes/child.js'
import { postgresPaths } from './postgres-paths.js'
import { rowOf, SIDES } from './rows.js'

/** @typedef {import('../redis/measure.js').Turn} Turn */

const module = new URL('postgres-side.js', import.meta.url)
const ROUND_MS = 300
const ROUNDS_OF_GROUP = 6
const WARM_UP = { callers: 64, calls: 10_000 }
/** Equally long. */
const TABLES = { this: 'sluice_a', before: 'sluice_b' }

/** @param {import('./rows.js').Run} run */
export async function overPostgres({ roots, rounds, wanted, say }) {
  const rows = []
  for (const [path, { callers }] of Object.entries(postgresPaths)) {
    if (!wanted(path)) continue
    const server = await startPostgres({ settings: { fsync: 'on', shared_buffers: '128MB' } })
    try {
      const pairs = await inGroups(SIDES, {
        start: (side) => startChild(module, [roots[side], path, TABLES[side], server.url]),
        async warmUp(child) {
          await child.ask(WARM_UP)
          const { perSecond } = await child.ask({ calls: callers * 10 })
          return 1e9 / perSecond
        },
        /** @returns {Promise<Turn>} */
        turn: (child, calls) => child.ask({ calls }),
        roundMs: ROUND_MS,
        roundsOfGroup: ROUNDS_OF_GROUP,
        rounds,
      })
      if (callers === 1) rows.push(rowOf(`${path}: p50`, 'us', pairs, ({ p50 }) => p50 * 1000))
      else rows.push(rowOf(path, 'a second', pairs, ({ perSecond }) => perSecond, { moreIsFaster: true }))
      say(`${path}: measured`)
    } finally {
      await server.stop()
    }
  }
  return rows
}
