import { drift, drainsContinuously, RATES } from '@sluice/testing/internal'
import type { Outcome, Row } from '../row.js'
import { openGrounds } from '../scenarios/sequences.js'

/** Rounding never adds up, however long a limiter runs at a rate that is no round number. */
export const row: Row = { number: 5, fault: 'drift', run: runLong }

const DAY_US = 86_400_000_000

/**
 * Calls each algorithm that drains continuously thousands of times at odd rates. Passes if the admitted units are never ahead
 * of exact arithmetic, and never more than one unit behind it. `share` is the part of the full load, 0 to 1.
 */
async function runLong(share: number): Promise<Outcome> {
  const steps = Math.ceil(4000 * share)
  const { shapes, stores, end } = await openGrounds()
  const wrong: string[] = []
  let [behind, longest] = [0n, 0]
  const runs = Object.entries(stores).flatMap(([where, openStore]) =>
    shapes.filter(drainsContinuously).flatMap((shape) =>
      RATES.map(async (rate) => {
        const seen = await drift(shape, openStore, rate, steps).catch(({ message }: Error) => {
          wrong.push(`${where}, ${shape.title}, ${rate.limit} per ${rate.window} ms: ${message}`)
        })
        if (!seen) return
        if (seen.behind > behind) behind = seen.behind
        longest = Math.max(longest, seen.elapsed)
      }),
    ),
  )
  await Promise.all(runs)
  await end()
  return {
    pass: wrong.length === 0,
    figure:
      `${RATES.length} rates from 1 a day to 700,000 a second, ${runs.length} runs of ${steps} steps and up to ` +
      `${Math.round(longest / DAY_US)} days: at most ${behind} unit behind exact arithmetic, never ahead` +
      `${wrong[0] ? `; ${wrong.length} wrong: ${wrong[0]}` : ''}`,
  }
}
