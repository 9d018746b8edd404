// The goals of requests beside those of a peer, driven in the process.
import { ratioGoal } from '../figures/goals.js'
import { BARE, SLUICE } from './modes.js'

/**
 * The cost that Sluice adds to a request of a framework, beside what the peer adds.
 * @param {string} framework The name of its file, which a repetition measures.
 * @param {{ title: string, peer: string, mostAdded: number }} about
 * @param {import('./in-process/measure.js').Turns} turns
 */
export function goalOf(framework, { title, peer, mostAdded }, turns) {
  const allowed = (/** @type {string} */ name) =>
    turns.map((group) => (group.get(name) ?? []).map(({ allowedUs }) => allowedUs))
  return ratioGoal(
    `${title}, added CPU of an allowed request`,
    [framework, allowed(SLUICE)],
    [framework, allowed(peer)],
    { atMost: mostAdded, unit: 'us', base: allowed(BARE), shown: peer },
  )
}
