// How Redis does with so many keys.
import { inRounds, mediansOf } from '../figures/rounds.js'
import { startClient } from '../redis/clients.js'
import { cpuOf, field } from '../redis/server-cpu.js'

/**
 * @typedef {import('../redis/connection.js').Address} Address
 * @typedef {import('../redis/connection.js').Client} Client
 * @typedef {object} OfKeys
 * @property {number} keys
 * @property {number} perSecond
 * @property {number} serverUs
 * @property {number} bytes Of all that Redis keeps for a key, its name included.
 */

const LIMIT = { limit: 50_000_000, windowMs: 86_400_000 }
const CALLS = 20_000
/** Keys made by one question to the client, which may not take for ever. */
const FILL = 250_000

/**
 * @param {number} keys
 * @param {{ server: Address, control: Client, rounds: number }} bench
 * @returns {Promise<OfKeys>}
 */
export async function redisKeys(keys, { server, control, rounds }) {
  await control.flushall()
  const client = startClient('Sluice', LIMIT, server)
  try {
    await client.ask({ callers: 64, keys: 1, calls: CALLS })
    await control.flushall()
    const empty = await memoryOf(control)
    for (let from = 0; from < keys; from += FILL) {
      await client.ask({ callers: 256, keys, from, calls: Math.min(FILL, keys - from) })
    }
    const bytes = ((await memoryOf(control)) - empty) / keys
    if ((await control.dbsize()) !== keys)
      throw new Error(`${await control.dbsize()} keys are in Redis, not ${keys}`)
    const seen = await inRounds(['Sluice'], { rounds }, async () => {
      const before = await cpuOf(control)
      const { perSecond } = await client.ask({ callers: 256, keys, calls: CALLS })
      return { perSecond, serverUs: ((await cpuOf(control)) - before) / CALLS }
    })
    return { keys, ...mediansOf(seen.get('Sluice') ?? []), bytes }
  } finally {
    await client.stop()
  }
}

/** @param {Client} redis */
async function memoryOf(redis) {
  return field(await redis.info('memory'), 'used_memory')
}
