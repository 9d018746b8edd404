import { randomInt } from 'node:crypto'
import * as fc from 'fast-check'
import { givenBackScenarios } from '../scenarios/given-back-scenarios.js'
import type { GivenBack } from '../scenarios/given-back-worker.js'
import { keepPromise } from '../scenarios/giving-back.js'
import { othersUnchanged } from '../scenarios/lost-state.js'
import type { Outcome, Row } from '../row.js'
import { openGrounds, playAll } from '../scenarios/sequences.js'

/** A call gives back its own units alone: what was kept obeys the promise, and what others charged stays charged. */
export const row: Row = { number: 29, fault: 'give-backs', run: giveBack }

/**
 * Plays random sequences of calls that give units back. Passes if no more is ever admitted than the promises allow. `share` is
 * the part of the full load, 0 to 1.
 */
async function giveBack(share: number): Promise<Outcome> {
  const grounds = await openGrounds()
  const { shapes, stores, end } = grounds
  const seed = randomInt(2 ** 31)
  const figures: string[] = []
  let pass = true
  for (const [where, openStore] of Object.entries(stores)) {
    const seen: GivenBack = { inStore: 0, degraded: 0, leased: 0, cancelled: 0 }
    const property = fc.asyncProperty(givenBackScenarios(shapes), (scenario) =>
      keepPromise(openStore, scenario, seen),
    )
    const { played, wrong } = await playAll(property, { sequences: Math.ceil(5_000 * share), seed })
    pass &&= wrong === undefined && Object.values(seen).every((count) => count > 0)
    figures.push(
      `${where} ${seen.inStore} settled lower, ${seen.degraded} degraded, ${seen.leased} leased, ` +
        `${seen.cancelled} cancelled in ${played} sequences${wrong ? `, then ${wrong}` : ''}`,
    )
  }
  const losses = await othersUnchanged(grounds, { sequences: Math.ceil(2_500 * share), seed })
  await end()
  pass &&= losses.wrong === undefined && losses.released > 0
  return {
    pass,
    figure:
      `kept charges obey the promise in every span, ${shapes.length} algorithms: ${figures.join('; ')}. ` +
      `Others' charges unchanged by ${losses.released} charges given back after their state was lost, ` +
      `in ${losses.sequences} sequences${losses.wrong ? `, then ${losses.wrong}` : ''}`,
  }
}
