import { randomInt } from 'node:crypto'
import { expectModelled } from '@sluice/testing/internal'
import type { Outcome, Row } from './row.js'
import { promiseKept } from './row-03-leases.js'
import { mostCost, openGrounds, play } from './sequences.js'

/** Memory, Redis and an independent model in BigInt give the same answers, to the tick. */
export const row: Row = { number: 3, fault: 'model', run: compare }

async function compare(share: number): Promise<Outcome> {
  const sequences = Math.ceil(10_000 * share)
  const grounds = await openGrounds()
  const { shapes, stores, end } = grounds
  const seed = randomInt(2 ** 31)
  const figures: string[] = []
  let pass = true
  for (const [where, openStore] of Object.entries(stores)) {
    const { played, wrong } = await play(shapes, { sequences, seed }, (scene) =>
      expectModelled(openStore, scene, mostCost),
    )
    pass &&= wrong === undefined && played >= sequences
    figures.push(
      `${where} = model in ${wrong ? played - 1 : played} sequences${wrong ? `, then ${wrong}` : ''}`,
    )
  }
  const leased = await promiseKept(grounds, { sequences: Math.ceil(400 * share), seed })
  await end()
  return {
    pass: pass && leased.pass,
    figure:
      `${shapes.length} algorithms, the same calls in both stores: ${figures.join('; ')}. ` +
      `With leases: ${leased.figure}`,
  }
}
