// Both builds on every path over Redis: decisions a second (with one caller the median latency) and, in a row of its own,
// CPU of all servers a decision.
import { startChild } from '../processes/child.js'
import { startCluster, startRedis } from '../processes/redis-servers.js'
import { connect } from '../redis/connection.js'
import { cpuOf } from '../redis/server-cpu.js'
import { inGroups } from '../figures/groups.js'
import { redisPaths } from './redis-paths.js'
import { rowOf, SIDES } from './rows.js'

/** @typedef {import('../redis/measure.js').Turn} Turn */

const module = new URL('redis-side.js', import.meta.url)
const ROUND_MS = 200
const ROUNDS_OF_GROUP = 6
/** Every key is met, and the code of both sides is hot. */
const WARM_UP = { callers: 64, calls: 20_000 }

/** @param {import('./rows.js').Run} run */
export async function overRedis({ roots, rounds, wanted, say }) {
  const rows = []
  for (const [path, { callers, cluster }] of Object.entries(redisPaths)) {
    if (!wanted(path)) continue
    const servers = await startServers(cluster)
    try {
      const { addresses } = servers
      const pairs = await inGroups(SIDES, {
        start: (side) => startChild(module, [roots[side], path, PREFIXES[side], addresses]),
        async warmUp(child) {
          await child.ask(WARM_UP)
          const { perSecond } = await child.ask({ calls: callers * 10 })
          return 1e9 / perSecond
        },
        /** @returns {Promise<Turn>} */
        async turn(child, calls) {
          const before = await servers.cpu()
          const seen = await child.ask({ calls })
          return { ...seen, serverUs: ((await servers.cpu()) - before) / calls }
        },
        roundMs: ROUND_MS,
        roundsOfGroup: ROUNDS_OF_GROUP,
        rounds,
      })
      if (callers === 1) rows.push(rowOf(`${path}: p50`, 'us', pairs, ({ p50 }) => p50 * 1000))
      else rows.push(rowOf(path, 'a second', pairs, ({ perSecond }) => perSecond, { moreIsFaster: true }))
      rows.push(rowOf(`${path}: CPU of Redis`, 'us', pairs, ({ serverUs }) => serverUs))
      say(`${path}: measured`)
    } finally {
      await servers.stop()
    }
  }
  return rows
}

/** @param {boolean} [cluster] */
async function startServers(cluster) {
  const started = cluster ? await startCluster(MASTERS) : await startRedis()
  const nodes = ('masters' in started ? started.masters : [started]).map(({ host, port }) => ({ host, port }))
  const controls = nodes.map(connect)
  return {
    addresses: JSON.stringify(nodes),
    async cpu() {
      return (await Promise.all(controls.map(cpuOf))).reduce((sum, us) => sum + us, 0)
    },
    async stop() {
      for (const control of controls) control.disconnect()
      await started.stop()
    },
  }
}

const MASTERS = 3

/** Equally long: the builds keep their keys apart, and Redis has no more work with those of one. */
const PREFIXES = { this: 'sluice-a', before: 'sluice-b' }
