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
 */

/** Requests in a turn, and those before that make the code hot. */
const AMOUNT = 5000
const WARM_UP = 10_000

/**
 * All contenders of a framework in one mode, a server process each, in turns.
 * @param {string} framework
 * @param {readonly string[]} names
 * @param {import('./modes.js').Mode} mode
 * @param {Bench} bench
 * @returns {Promise<Map<string, Turn[]>>}
 */
export async function measureMode(framework, names, { limit, status, onRedis }, { load, redis, rounds }) {
  const address = onRedis ? [JSON.stringify({ host: redis.host, port: redis.port })] : []
  const module = new URL('server.js', import.meta.url)
  const servers = new Map(
    names.map((name) => [name, startChild(module, [framework, name, JSON.stringify(limit), ...address])]),
  )
  try {
    for (const [name, server] of servers) {
      const { port } = await server.ask({})
      await checkResponses(`${framework}, ${name}`, port, status)
      await load.ask({ port, amount: WARM_UP, status, users: onRedis })
    }
    return await inRounds(names, { rounds }, async (name) => {
      const server = /** @type {Child} */ (servers.get(name))
      const { port, cpuUs } = await server.ask({})
      const perSecond = await load.ask({ port, amount: AMOUNT, status, users: onRedis })
      return { cpuUs: ((await server.ask({})).cpuUs - cpuUs) / AMOUNT, perSecond }
    })
  } finally {
    for (const server of servers.values()) await server.stop()
  }
}

/**
 * Whether a server answers as it should before it is measured: 200 while the limit lasts, then 429 with Retry-After;
 * and whether those that are compared set the same three headers.
 * @param {string} name
 * @param {number} port
 * @param {number} status
 */
async function checkResponses(name, port, status) {
  const get = () => fetch(`http://127.0.0.1:${port}/`, { headers: { 'x-user': 'check' } })
  const first = await get()
  const second = await get()
  if (first.status !== 200 || second.status !== status)
    throw new Error(`${name} answers ${first.status} and ${second.status}, where 200 and ${status} are right`)
  const needed = /Sluice|hand-written/.test(name)
    ? [
        'X-RateLimit-Limit',
        'X-RateLimit-Remaining',
        'X-RateLimit-Reset',
        ...(status === 429 ? ['Retry-After'] : []),
      ]
    : []
  const missing = needed.filter((header) => !second.headers.has(header))
  if (missing.length > 0) throw new Error(`${name} sets no ${missing.join(', ')}`)
}
