import { inRounds } from '../figures/rounds.js'
import { startChild } from '../processes/child.js'
import { startClient } from './clients.js'
import { alone, limitOf, loads } from './loads.js'
import { cpuOf, scriptsRun, scriptTimeOf } from './server-cpu.js'

/**
 * @typedef {import('./closed-loop.js').Seen & { serverUs: number }} Turn `serverUs`: CPU of Redis, microseconds a call.
 * @typedef {import('./connection.js').Address} Address
 * @typedef {import('./connection.js').Client} Client
 * @typedef {object} Bench
 * @property {Address} server
 * @property {Client} control
 * @property {(name: string) => import('./clients.js').ClientProcess} client
 * @property {number} rounds
 * @property {(name: string) => boolean} wanted
 * @property {(line: string) => void} say
 */

/** Makes code hot in every client before anything is measured. */
const WARM_UP = { callers: 64, keys: 10_000, calls: 30_000 }

/**
 * A client process for everyone who is wanted, for the whole run.
 * @param {Address} server
 * @param {(name: string) => boolean} wanted
 */
export async function startClients(server, wanted) {
  const names = new Set([...Object.values(loads), alone].flatMap((load) => load.names.filter(wanted)))
  const clients = new Map([...names].map((name) => [name, startClient(name, limitOf(name), server)]))
  /** @param {string} name */
  const client = (name) => /** @type {import('./clients.js').ClientProcess} */ (clients.get(name))
  for (const name of names) await client(name).ask(WARM_UP)
  return {
    client,
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
      const figures = await client(name).ask(load)
      return { ...figures, serverUs: ((await cpuOf(control)) - before) / figures.calls }
    }
    seen.set(title, await inRounds(names.filter(wanted), { rounds, warmUp: true }, turn))
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
    scriptTimeOf(control, async () => (await client(name).ask(load)).calls),
  )
}

/**
 * Denials of a denied key, and the scripts that ran in Redis meanwhile.
 * @param {Bench} bench
 */
export async function denials({ server: { host, port }, control, rounds, wanted }) {
  const names = ['Sluice, decide', 'Sluice, await consume', 'rate-limiter-flexible, inMemoryBlock']
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
