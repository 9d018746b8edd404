import { inRounds } from '../figures/rounds.js'
import { startChild } from '../processes/child.js'
import { checkAlike } from './alike.js'
import { HAND_WRITTEN, SLUICE } from './modes.js'

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
 * All contenders of a framework in one mode, a server process each, in turns.
 * @param {string} framework
 * @param {readonly string[]} names
 * @param {import('./modes.js').Mode} mode
 * @param {Bench} bench
 * @returns {Promise<Map<string, Turn[]>>}
 */
export async function measureMode(
  framework,
  names,
  { limit, status, onRedis },
  { load, redis, rounds, amount },
) {
  const address = onRedis ? [JSON.stringify({ host: redis.host, port: redis.port })] : []
  const module = new URL('server.js', import.meta.url)
  const servers = new Map(
    names.map((name) => [name, startChild(module, [framework, name, JSON.stringify(limit), ...address])]),
  )
  try {
    const answers = new Map()
    for (const [name, server] of servers) {
      const { port } = await server.ask({})
      answers.set(name, await checkedAnswer(`${framework}, ${name}`, port, status))
      await load.ask({ port, amount: WARM_UP, status, users: onRedis })
    }
    if (!onRedis) checkAlike(framework, answers.get(HAND_WRITTEN), answers.get(SLUICE))
    return await inRounds(names, { rounds: TURNS * rounds }, async (name) => {
      const server = /** @type {Child} */ (servers.get(name))
      const { port, cpuUs } = await server.ask({})
      const perSecond = await load.ask({ port, amount, status, users: onRedis })
      return { cpuUs: ((await server.ask({})).cpuUs - cpuUs) / amount, perSecond }
    })
  } finally {
    for (const server of servers.values()) await server.stop()
  }
}

/**
 * Whether a server answers as it should before it is measured: 200 while the limit lasts, then 429. Gives which
 * headers the answer has and what it says, without its numbers.
 * @param {string} name
 * @param {number} port
 * @param {number} status
 */
async function checkedAnswer(name, port, status) {
  const get = () => fetch(`http://127.0.0.1:${port}/`, { headers: { 'x-user': 'check' } })
  const first = await get()
  const second = await get()
  if (first.status !== 200 || second.status !== status)
    throw new Error(`${name} answers ${first.status} and ${second.status}, where 200 and ${status} are right`)
  const type = second.headers.get('Content-Type')?.replace(/;.*/, '')
  return [...second.headers.keys(), type, await second.text()].join('\n').replace(/\d+/g, '0')
}
