// Processes that call for one hot key at once: each call asked of Redis (in groups), or served from a lease.
import { inRounds } from '../figures/rounds.js'
import { startClient } from './clients.js'
import { LEASES } from './loads.js'

/** About what leases serve on a few cores, as it bounds their slices too. Leases keep half a million of it back. */
const LIMIT = { limit: 5_000_000, windowMs: 1000 }
const LOAD = { loop: /** @type {const} */ ('timed'), callers: 256, ms: 500 }
/** Numbers of client processes. */
export const SIZES = [2, 4]

/**
 * Measures how many calls a second on one key are allowed, in all processes together.
 * @param {import('./measure.js').Bench} bench
 * @returns {Promise<Map<number, Map<string, number[]>>>} by number of processes and by contender, a figure for each round
 */
export async function hotKeySpeed({ server, rounds, wanted, say }) {
  const names = ['Sluice', LEASES].filter(wanted)
  const fleets = new Map(
    names.map((name) => [
      name,
      Array.from({ length: Math.max(...SIZES) }, () => startClient(name, LIMIT, server)),
    ]),
  )
  const seen = new Map()
  try {
    for (const size of SIZES) {
      const turn = async (/** @type {string} */ name) => {
        const fleet = fleets.get(name)?.slice(0, size) ?? []
        const each = await Promise.all(fleet.map((client) => client.ask(LOAD)))
        return each.reduce((sum, { perSecond }) => sum + perSecond, 0)
      }
      seen.set(size, await inRounds(names, { rounds, warmUp: true }, turn))
    }
  } finally {
    for (const client of [...fleets.values()].flat()) await client.stop()
  }
  say('leases: measured')
  return seen
}
