// Requests in the process behind Sluice, beside a limiter that is written by hand for the framework.
import { median } from '@sluice/harness/figures'
import { ratioGoal } from '../figures/goals.js'
import { frameworkNamed, frameworks } from './frameworks.js'
import { measureInProcess } from './in-process/measure.js'
import { HAND_WRITTEN, SLUICE } from './modes.js'
import { named, setups } from './setups.js'

/** @typedef {import('./in-process/measure.js').Turns} Turns */
/** @typedef {'allowedUs' | 'deniedUs'} Figure */

/** @type {import('../report.js').Part} */
export const byHand = {
  name: 'by-hand',
  title: 'HTTP, beside a limiter written by hand',
  packages: ['express', 'koa', '@nestjs/core', 'fastify', 'hono', '@hono/node-server'],
  notes: [
    "Requests and the hand-written limiter are those of [HTTP](http.md), in the process. `ietf` is `headers: 'ietf'`. Two limiters are two of Sluice, one after the other (in Nest two limits, decided together), beside one middleware with both GCRAs that writes its headers once; where a request is denied the second denies it.",
    'The goal is 1.05, and 1.15 of two limiters. An allowed request may also take 0.5 us more: where that is more than 5 % the goal is shown with it.',
  ],
  async measure({ rounds, wanted, say }) {
    const goals = []
    for (const framework of frameworks.filter(wanted)) {
      const names = [HAND_WRITTEN, SLUICE].flatMap((name) => setups.map((setup) => named(name, setup)))
      const { title } = await frameworkNamed(framework)
      const turns = await measureInProcess(framework, names, rounds)
      goals.push(...setups.flatMap((setup) => goalsOf(framework, title, setup, turns)))
      say(`${title}: measured`)
    }
    return { goals, tables: [] }
  },
}

/** The most time that the adapter may take, beside a limiter that is written by hand for the framework. */
const ONE = 1.05
const TWO = 1.15
/** An allowed request may take so much more. */
const ADDED_US = 0.5

/**
 * @param {string} framework The name of its file, which a repetition measures.
 * @param {string} title
 * @param {import('./setups.js').Setup} setup
 * @param {Turns} turns
 */
function goalsOf(framework, title, setup, turns) {
  const figures = (/** @type {string} */ name, /** @type {Figure} */ figure) =>
    turns.map((group) => (group.get(named(name, setup)) ?? []).map((turn) => turn[figure]))
  const goal = (/** @type {string} */ request, /** @type {Figure} */ figure, /** @type {number} */ atMost) =>
    ratioGoal(
      `${named(title, setup)}: CPU of ${request} request`,
      [framework, figures(SLUICE, figure)],
      [framework, figures(HAND_WRITTEN, figure)],
      { atMost, unit: 'us', shown: HAND_WRITTEN },
    )
  const handUs = median(figures(HAND_WRITTEN, 'allowedUs').flat())
  const [ofAllowed, ofDenied] =
    setup === 'two limiters' ? [TWO, TWO] : [Math.max(ONE, 1 + ADDED_US / handUs), ONE]
  return [goal('an allowed', 'allowedUs', ofAllowed), goal('a denied', 'deniedUs', ofDenied)]
}
