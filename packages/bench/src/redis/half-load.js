// Gathering must cost no call anything while there is little to do.
import { inRounds } from '../figures/rounds.js'
import { median } from '@sluice/harness/figures'
import { ONE_BY_ONE } from './loads.js'

/** @typedef {{ p50: number, p99: number }} Latencies In milliseconds. */

const KEYS = 10_000
/** Many short turns: who is held up by others for some milliseconds spoils the 99th percentile of one turn only. */
const SECONDS = 0.5
const TURNS = 3

/**
 * Calls that come at half of the rate at which each travels by itself, together and one by one; in each turn both get
 * the same calls at the same moments.
 * @param {import('./measure.js').Bench} bench
 * @param {readonly import('./measure.js').Turn[]} closed What `ONE_BY_ONE` did in a closed loop.
 * @returns {Promise<{ perSecond: number, turns: Map<string, Latencies[]> }>}
 */
export async function atHalfLoad({ client, rounds, wanted }, closed) {
  const perSecond = Math.round(median(closed.map((turn) => turn.perSecond)) / 2)
  const names = closed.length > 0 ? ['Sluice', ONE_BY_ONE].filter(wanted) : []
  const calls = Math.round(perSecond * SECONDS)
  let turn = 0
  const turns = await inRounds(names, { rounds: TURNS * rounds, warmUp: true }, (name) => {
    const seed = Math.floor(turn++ / names.length)
    return client(name, KEYS).ask({ loop: 'open', keys: KEYS, calls, perSecond, seed })
  })
  return { perSecond, turns }
}
