// How it grows: with keys, with client processes, with masters of a Cluster.
import { inRounds, mediansOf } from '../figures/rounds.js'
import { short } from '../figures/table.js'
import { startChild } from '../processes/child.js'
import { startRedis } from '../processes/redis-servers.js'
import { connect } from '../redis/connection.js'
import { manyProcesses } from './processes.js'
import { redisKeys } from './redis-keys.js'
import { exponentTable, memoryTable, processTable, redisTable } from './tables.js'

const SIZES = [1000, 10_000, 100_000, 1_000_000]
/** The most that a memory store may hold is a little above. */
const LARGE_MEMORY = 8_000_000
const LARGE_REDIS = 10_000_000

/** @type {import('../report.js').Part} */
export const scale = {
  name: 'scale',
  title: 'Scale',
  packages: ['ioredis'],
  notes: [
    'GCRA, limits that are never reached, keys called in an order that caches do not like. In Redis: `denialCache: false`, a deadline of 10 s; 256 callers in one process for the keys, 64 callers in each process where processes are counted.',
    'An exponent is the k of y = c * x^k that fits the figures best: 0 where something does not grow, 1 where it grows in proportion. Clients and servers share the cores of one machine here: where all of them are busy, decisions a second no longer grow, and the CPU of a decision is what tells what more machines would do.',
  ],
  async measure({ rounds, large, say }) {
    const memory = await memoryFigures(large ? [...SIZES, LARGE_MEMORY] : SIZES, rounds)
    say('keys in memory: measured')
    const redis = await redisFigures(large ? [...SIZES, LARGE_REDIS] : SIZES, rounds)
    say('keys in Redis: measured')
    const processes = await manyProcesses(rounds)
    /** @type {Record<string, Points>} */
    const curves = {
      'memory: CPU, ns': memory.map(({ keys, cpuNs }) => [keys, cpuNs]),
      'Redis: CPU, ns': redis.map(({ keys, serverUs }) => [keys, serverUs * 1000]),
      'memory: bytes a key': memory.map(({ keys, bytes }) => [keys, bytes]),
      'Redis: bytes a key': redis.map(({ keys, bytes }) => [keys, bytes]),
      'Redis: decisions/s': redis.map(({ keys, perSecond }) => [keys, perSecond]),
      ...byTopology(processes),
    }
    const exponents = Object.entries(curves).map(([name, points]) => [name, short(exponentOf(points))])
    return {
      goals: [],
      tables: [memoryTable(memory), redisTable(redis), exponentTable(exponents), processTable(processes)],
    }
  },
}

/**
 * @typedef {{ keys: number, cpuNs: number, bytes: number, textBytes: number }} OfMemory
 *
 * @param {readonly number[]} sizes
 * @param {number} rounds
 * @returns {Promise<OfMemory[]>}
 */
async function memoryFigures(sizes, rounds) {
  const seen = await inRounds(sizes.map(String), { rounds }, async (keys) => {
    const child = startChild(new URL('memory-keys.js', import.meta.url), ['memory store'])
    try {
      return /** @type {OfMemory} */ (await child.ask({ keys: Number(keys) }))
    } finally {
      await child.stop()
    }
  })
  return [...seen.values()].map(mediansOf)
}

/**
 * @param {readonly number[]} sizes
 * @param {number} rounds
 */
async function redisFigures(sizes, rounds) {
  const server = await startRedis()
  const control = connect(server)
  const found = []
  try {
    for (const keys of sizes) found.push(await redisKeys(keys, { server, control, rounds }))
  } finally {
    control.disconnect()
    await server.stop()
  }
  return found
}

/**
 * Decisions a second against the number of client processes.
 * @param {readonly import('./processes.js').OfClients[]} processes
 */
function byTopology(processes) {
  /** @type {Record<string, [clients: number, perSecond: number][]>} */
  const curves = {}
  for (const { topology, clients, perSecond } of processes) {
    const curve = (curves[`${topology}: decisions/s against clients`] ??= [])
    curve.push([clients, perSecond])
  }
  return curves
}

/** @typedef {readonly (readonly [x: number, y: number])[]} Points */

/**
 * The k of y = c * x^k that fits best: 0 where y does not grow, 1 where it grows as x does.
 * @param {Points} points
 */
function exponentOf(points) {
  const logs = points.map(([x, y]) => /** @type {const} */ ([Math.log(x), Math.log(y)]))
  const mean = (/** @type {0 | 1} */ axis) => logs.reduce((sum, point) => sum + point[axis], 0) / logs.length
  const [meanX, meanY] = [mean(0), mean(1)]
  const covariance = logs.reduce((sum, [x, y]) => sum + (x - meanX) * (y - meanY), 0)
  return covariance / logs.reduce((sum, [x]) => sum + (x - meanX) ** 2, 0)
}
