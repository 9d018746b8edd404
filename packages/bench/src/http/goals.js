// What was wanted of requests.
import { ratioGoal } from '../figures/goals.js'
import { BARE, HAND_WRITTEN, ON_REDIS, ONE_SET, SLUICE } from './modes.js'

/** @typedef {import('./measure.js').Turn} Turn */

/**
 * The goals of one framework.
 * @param {string} title
 * @param {string} peer
 * @param {(mode: 'allowed' | 'denied' | 'Redis', name: string) => Turn[]} turnsOf
 */
export function goalsOf(title, peer, turnsOf) {
  const cpu = (/** @type {string} */ name) => turnsOf('allowed', name).map(({ cpuUs }) => cpuUs)
  /** Beside what the framework itself uses, in the same round. @param {string} name */
  const added = (name) => cpu(name).map((us, round) => us - (cpu(BARE)[round] ?? NaN))
  // A difference of two figures that are nearly the same is near 0 in some round: no ratio of a single round says much.
  // Where a peer seems to add nothing, nothing was measured.
  const ofMedians = (/** @type {import('../figures/goals.js').Goal} */ goal) => ({
    ...goal,
    value: goal.peer > 0 ? goal.sluice / goal.peer : NaN,
  })
  const requests = (/** @type {'denied' | 'Redis'} */ mode, /** @type {string} */ name) =>
    turnsOf(mode, name).map(({ perSecond }) => perSecond / 1000)
  return [
    ratioGoal(`${title}, CPU a request`, cpu(SLUICE), [HAND_WRITTEN, cpu(HAND_WRITTEN)], {
      atMost: 1.03,
      unit: 'us',
    }),
    ofMedians(
      ratioGoal(`${title}, added CPU a request`, added(SLUICE), [peer, added(peer)], {
        atMost: 0.4,
        unit: 'us',
      }),
    ),
    ratioGoal(
      `${title}, denials`,
      requests('denied', SLUICE),
      [HAND_WRITTEN, requests('denied', HAND_WRITTEN)],
      {
        atLeast: 0.95,
        unit: 'k/s',
      },
    ),
    ratioGoal(
      `${title}, requests with Redis`,
      requests('Redis', ON_REDIS),
      [ONE_SET, requests('Redis', ONE_SET)],
      {
        atLeast: 0.95,
        unit: 'k/s',
      },
    ),
  ]
}
