import { randomInt } from 'node:crypto'
import * as fc from 'fast-check'
import { expectInLine, expectModelled, mostCost, permitSteps, Session } from '@sluice/testing/internal'
import type { Outcome, Row } from '../row.js'
import { promiseKept } from './row-03-leases.js'
import { type Amount, type Grounds, openGrounds, play, playAll } from '../scenarios/sequences.js'

/** Memory, Redis and an independent model in BigInt give the same answers, to the tick. */
export const row: Row = { number: 3, fault: 'model', run: compare }

/**
 * Plays random sequences of calls on the stores and on the models of the conformance kit. Passes if all answers are the same.
 * `share` is the part of the full load, 0 to 1.
 */
async function compare(share: number): Promise<Outcome> {
  const sequences = Math.ceil(10_000 * share)
  const grounds = await openGrounds()
  const { shapes, stores, end } = grounds
  const seed = randomInt(2 ** 31)
  const figures: string[] = []
  let pass = true
  for (const [where, openStore] of Object.entries(stores)) {
    const { played, wrong } = await play(shapes, { sequences, seed }, (scenario) =>
      expectModelled(openStore, scenario, mostCost),
    )
    pass &&= wrong === undefined && played >= sequences
    figures.push(
      `${where} = model in ${wrong ? played - 1 : played} sequences${wrong ? `, then ${wrong}` : ''}`,
    )
  }
  const leased = await promiseKept(grounds, { sequences: Math.ceil(400 * share), seed })
  const permits = await permitsInLine(grounds, { sequences: Math.ceil(1000 * share), seed })
  await end()
  return {
    pass: pass && leased.pass && permits.pass,
    figure:
      `${shapes.length} algorithms, the same calls in both stores: ${figures.join('; ')}. ` +
      `With leases: ${leased.figure}. Permits: ${permits.figure}`,
  }
}

/** Semaphores of one name and several limits are served in one line, each under its own. */
async function permitsInLine({ stores }: Grounds, amount: Amount): Promise<Outcome> {
  const figures: string[] = []
  let pass = true
  for (const [where, openStore] of Object.entries(stores)) {
    const inLine = fc.asyncProperty(permitSteps, async (steps) => {
      const session = await Session.open(openStore, START)
      await expectInLine(session, steps)
      await session.close()
    })
    const { played, wrong } = await playAll(inLine, amount)
    pass &&= wrong === undefined && played >= amount.sequences
    figures.push(
      `${where} = one line in ${wrong ? played - 1 : played} sequences${wrong ? `, then ${wrong}` : ''}`,
    )
  }
  return { pass, figure: figures.join('; ') }
}

const START = 1_767_225_600_000_000
