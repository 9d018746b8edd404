import { randomInt } from 'node:crypto'
import { expectModelled } from '../conformance/comparison.js'
import type { Outcome, Row } from './row.js'
import { mostCost, openGrounds, play } from './sequences.js'

/** Memory, Redis and an independent model in BigInt give the same answers, to the tick. */
export const row: Row = { number: 3, fault: 'model', run: compare }

async function compare(share: number): Promise<Outcome> {
  const sequences = Math.ceil(10_000 * share)
  const { shapes, stores, end } = await openGrounds()
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
  await end()
  return { pass, figure: `${shapes.length} algorithms, the same calls in both stores: ${figures.join('; ')}` }
}
