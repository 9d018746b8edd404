// What was wanted of requests, driven in the process.
import { ratioGoal } from '../figures/goals.js'
import { BARE, HAND_WRITTEN, SLUICE } from './modes.js'

/** What the adapter may take, beside a limiter that is written by hand for the framework. */
const ALLOWED = 1.05
const DENIED = 1.08

/**
 * The goals of one framework.
 * @param {string} framework The name of its file, which a repetition measures.
 * @param {{ title: string, peer: string, mostAdded: number }} about
 * @param {import('./in-process/measure.js').Turns} turns
 */
export function goalsOf(framework, { title, peer, mostAdded }, turns) {
  const figures = (/** @type {string} */ name, /** @type {'allowedUs' | 'deniedUs'} */ figure) =>
    turns.map((group) => (group.get(name) ?? []).map((turn) => turn[figure]))
  const beside = (
    /** @type {string} */ what,
    /** @type {'allowedUs' | 'deniedUs'} */ figure,
    /** @type {number} */ atMost,
  ) =>
    ratioGoal(
      `${title}, CPU of ${what} request`,
      [framework, figures(SLUICE, figure)],
      [framework, figures(HAND_WRITTEN, figure)],
      { atMost, unit: 'us', shown: HAND_WRITTEN },
    )
  const added = ratioGoal(
    `${title}, added CPU of an allowed request`,
    [framework, figures(SLUICE, 'allowedUs')],
    [framework, figures(peer, 'allowedUs')],
    { atMost: mostAdded, unit: 'us', base: figures(BARE, 'allowedUs'), shown: peer },
  )
  return [beside('an allowed', 'allowedUs', ALLOWED), beside('a denied', 'deniedUs', DENIED), added]
}
