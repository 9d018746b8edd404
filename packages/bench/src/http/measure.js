import { GENEROUS } from '../contender.js'
import { inRounds } from '../figures/rounds.js'
import { startChild } from '../processes/child.js'

/**
 * @typedef {import('../processes/child.js').Child} Child
 * @typedef {import('../redis/connection.js').Address} Address
 * @typedef {{ cpuUs: number, perSecond: number }} Turn CPU of the server process a request, and requests a second.
 * @typedef {object} Bench
 * @property {Child} load
 * @property {Address} redis
 * @property {number} rounds
 * @property {number} amount Requests in a turn.
 */

/** Short turns, and many: what disturbs one of them does not count. */
const TURNS = 3

/** Requests before the first turn, which make the code hot. */
const WARM_UP = 10_000

/**
 * All contenders of a framework that ask Redis, a server process each, in turns.
 * @param {string} framework
 * @param {readonly string[]} names
 * @param {Bench} bench
 * @returns {Promise<Map<string, Turn[]>>}
 */
export async function measureOnRedis(framework, names, { load, redis: { host, port }, rounds, amount }) {
  const args = [JSON.stringify(GENEROUS), JSON.stringify({ host, port })]
  const module = new URL('server.js', import.meta.url)
  const servers = new Map(names.map((name) => [name, startChild(module, [framework, name, ...args])]))
  try {
    for (const server of servers.values())
      await load.ask({ port: (await server.ask({})).port, amount: WARM_UP })
    return await inRounds(names, { rounds: TURNS * rounds }, async (name) => {
      const server = /** @type {Child} */ (servers.get(name))
      const { port, cpuUs } = await server.ask({})
      const perSecond = await load.ask({ port, amount })
      return { cpuUs: ((await server.ask({})).cpuUs - cpuUs) / amount, perSecond }
    })
  } finally {
    for (const server of servers.values()) await server.stop()
  }
}
