// Both builds on every path over Redis: decisions a second (with one caller the median latency) and, in a row of its own,
// CPU of the whole server a decision.
import { startChild } from '../processes/child.js'
import { startRedis } from '../processes/redis-servers.js'
import { connect } from '../redis/connection.js'
import { cpuOf } from '../redis/server-cpu.js'
import { inPairs } from './pairs.js'
import { redisPaths } from './redis-paths.js'
import { rowOf } from './rows.js'

/** @typedef {import('../redis/measure.js').Turn} Turn */

const module = new URL('redis-side.js', import.meta.url)
const ROUND_MS = 200
const ROUNDS_OF_PAIR = 6
/** Every key is met, and the code of both sides is hot. */
const WARM_UP = { callers: 64, calls: 20_000 }

/** @param {import('./rows.js').Run} run */
export async function overRedis({ roots, rounds, wanted, say }) {
  const server = await startRedis()
  const address = JSON.stringify({ host: server.host, port: server.port })
  const control = connect(server)
  const rows = []
  try {
    for (const [path, { callers }] of Object.entries(redisPaths)) {
      if (!wanted(path)) continue
      const pairs = await inPairs({
        start: (side) => startChild(module, [roots[side], path, PREFIXES[side], address]),
        async warmUp(child) {
          await child.ask(WARM_UP)
          const { perSecond } = await child.ask({ calls: callers * 10 })
          return 1e9 / perSecond
        },
        /** @returns {Promise<Turn>} */
        async turn(child, calls) {
          const before = await cpuOf(control)
          const seen = await child.ask({ calls })
          return { ...seen, serverUs: ((await cpuOf(control)) - before) / calls }
        },
        roundMs: ROUND_MS,
        roundsOfPair: ROUNDS_OF_PAIR,
        rounds,
      })
      if (callers === 1) rows.push(rowOf(`${path}: p50`, 'us', pairs, ({ p50 }) => p50 * 1000))
      else rows.push(rowOf(path, 'a second', pairs, ({ perSecond }) => perSecond, { moreIsFaster: true }))
      rows.push(rowOf(`${path}: CPU of Redis`, 'us', pairs, ({ serverUs }) => serverUs))
      await control.flushall()
      say(`${path}: measured`)
    }
    return rows
  } finally {
    control.disconnect()
    await server.stop()
  }
}

/** Equally long: the builds keep their keys apart, and Redis has no more work with those of one. */
const PREFIXES = { this: 'sluice-a', before: 'sluice-b' }
