import { inRounds } from '../figures/rounds.js'
import { startChild } from '../processes/child.js'
import { startClient } from './clients.js'
import { alone, BLOCKED, isJudged, limitOf, loads } from './loads.js'
import { cpuOf, scriptsRun, scriptTimeOf } from './server-cpu.js'

/**
 * @typedef {import('./loops/closed.js').Seen & { serverUs: number }} Turn `serverUs`: CPU of Redis, microseconds a call.
 * @typedef {import('./connection.js').Address} Address
 * @typedef {import('./connection.js').Client} Client
 * @typedef {object} Bench
 * @property {Address} server
 * @property {Client} control
 * @property {(name: string, keys: number) => import('./clients.js').ClientProcess} client
 * @property {number} rounds
 * @property {(name: string) => boolean} wanted
 * @property {(line: string) => void} say
 */

/** Makes code hot in every client before anything is measured: a compiler still at work is CPU of the process too. */
const WARM_UP = { callers: 64, calls: 100_000 }

/**
 * A client process for everyone who is wanted, for the whole run, and another one for the hot key.
 * @param {Address} server
 * @param {(name: string) => boolean} wanted
 */
export async function startClients(server, wanted) {
  const clients = new Map()
  const nameOf = (/** @type {string} */ name, /** @type {number} */ keys) =>
    keys === 1 ? `${name}, hot` : name
  for (const { names, keys } of [...Object.values(loads), alone]) {
    for (const name of names.filter(wanted)) {
      if (clients.has(nameOf(name, keys))) continue
      const client = startClient(name, limitOf(name, keys), server)
      clients.set(nameOf(name, keys), client)
      await client.ask({ ...WARM_UP, keys: keys === 1 ? 1 : 10_000 })
    }
  }
  return {
    client: (/** @type {string} */ name, /** @type {number} */ keys) => clients.get(nameOf(name, keys)),
    async stop() {
      for (const one of clients.values()) await one.stop()
    },
  }
}

/**
 * Every load, with all of its contenders in turns.
 * @param {Bench} bench
 * @returns {Promise<Map<string, Map<string, Turn[]>>>} by load and contender
 */
export async function underLoad({ client, control, rounds, wanted, say }) {
  const seen = new Map()
  for (const [title, { names, ...load }] of Object.entries(loads)) {
    const turn = async (/** @type {string} */ name) => {
      const before = await cpuOf(control)
      const figures = await client(name, load.keys).ask(load)
      return { ...figures, serverUs: ((await cpuOf(control)) - before) / figures.calls }
    }
    seen.set(title, await inRounds(names.filter(wanted), { rounds, warmUp: true, often: isJudged }, turn))
    say(`${title}: measured`)
  }
  return seen
}

/**
 * Time in scripts, microseconds a decision that travels alone.
 * @param {Bench} bench
 */
export async function scriptTimes({ client, control, rounds, wanted }) {
  const { names, ...load } = alone
  return inRounds(names.filter(wanted), { rounds, warmUp: true }, (name) =>
    scriptTimeOf(control, async () => (await client(name, load.keys).ask(load)).calls),
  )
}

/**
 * Denials of a denied key, and the scripts that ran in Redis meanwhile.
 * @param {Bench} bench
 */
export async function denials({ server: { host, port }, control, rounds, wanted }) {
  const names = [
    'Sluice, decide',
    BLOCKED,
    'Sluice, decide, costs of 1 to 4',
    'Sluice, decide, costs of 1 to 100',
    'Sluice, await consume',
    'rate-limiter-flexible, inMemoryBlock',
  ]
  return inRounds(names.filter(wanted), { rounds }, async (name) => {
    const child = startChild(new URL('denials.js', import.meta.url), [name, JSON.stringify({ host, port })])
    try {
      await child.ask({ ms: 100 })
      await control.config('RESETSTAT')
      const { calls, perCpuSecond } = await child.ask({ ms: 500 })
      return { perCpuSecond, calls: Number(calls), asked: await scriptsRun(control) }
    } finally {
      await child.stop()
    }
  })
}
