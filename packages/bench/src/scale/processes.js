// More clients, and more masters.
import { GENEROUS } from '../contender.js'
import { inRounds, mediansOf } from '../figures/rounds.js'
import { startCluster, startRedis } from '../processes/redis-servers.js'
import { startClient } from '../redis/clients.js'
import { connect } from '../redis/connection.js'
import { bytesOf, cpuOf } from '../redis/server-cpu.js'

/**
 * @typedef {import('../redis/connection.js').Address} Address
 * @typedef {object} OfClients
 * @property {string} topology
 * @property {number} clients
 * @property {number} perSecond Of all of them together.
 * @property {number} p99
 * @property {number} serverUs CPU of all masters, a decision.
 * @property {number} clientUs
 * @property {number} wireBytes Of a decision, to the masters and back.
 */

const LOAD = { callers: 64, keys: 10_000, calls: 15_000 }
const CLIENTS = [1, 2, 4]

/** Each starts servers, and gives where they are and how to stop them. */
const topologies = {
  'one Redis': async () => {
    const server = await startRedis()
    return { nodes: [server], address: server, stop: () => server.stop() }
  },
  'Cluster, 1 master': () => cluster(1),
  'Cluster, 3 masters': () => cluster(3),
}

/**
 * @param {number} rounds
 * @returns {Promise<OfClients[]>}
 */
export async function manyProcesses(rounds) {
  const found = []
  for (const [topology, start] of Object.entries(topologies)) {
    const servers = await start()
    try {
      found.push(...(await withServers(topology, servers.nodes, servers.address, rounds)))
    } finally {
      await servers.stop()
    }
  }
  return found
}

/**
 * @param {string} topology
 * @param {readonly Address[]} nodes
 * @param {Address | readonly Address[]} address
 * @param {number} rounds
 */
async function withServers(topology, nodes, address, rounds) {
  const controls = nodes.map(connect)
  const clients = Array.from({ length: Math.max(...CLIENTS) }, () => startClient('Sluice', GENEROUS, address))
  /** @param {(control: import('../redis/connection.js').Client) => Promise<number>} figureOf */
  const all = async (figureOf) =>
    (await Promise.all(controls.map(figureOf))).reduce((sum, one) => sum + one, 0)
  try {
    for (const client of clients) await client.ask(LOAD) // to warm up
    const seen = await inRounds(CLIENTS.map(String), { rounds, warmUp: true }, async (count) => {
      const [us, bytes] = [await all(cpuOf), await all(bytesOf)]
      const each = await Promise.all(clients.slice(0, Number(count)).map((client) => client.ask(LOAD)))
      const calls = each.reduce((sum, one) => sum + one.calls, 0)
      return {
        perSecond: each.reduce((sum, one) => sum + one.perSecond, 0),
        p99: Math.max(...each.map((one) => one.p99)),
        serverUs: ((await all(cpuOf)) - us) / calls,
        wireBytes: ((await all(bytesOf)) - bytes) / calls,
        clientUs: each.reduce((sum, one) => sum + one.cpuUs * one.calls, 0) / calls,
      }
    })
    return [...seen].map(([count, turns]) => ({ topology, clients: Number(count), ...mediansOf(turns) }))
  } finally {
    for (const client of clients) await client.stop()
    for (const control of controls) control.disconnect()
  }
}

/** @param {number} masters */
async function cluster(masters) {
  const started = await startCluster(masters)
  return { nodes: started.masters, address: started.masters, stop: () => started.stop() }
}
