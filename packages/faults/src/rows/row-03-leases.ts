import * as fc from 'fast-check'
import type { OpenStore } from '@sluice/testing/internal'
import { bookedBy } from '../scenarios/booked-by.js'
import { LeasedFleet } from '../scenarios/leased-fleet.js'
import { excess, unbooked } from '../scenarios/leased-promise.js'
import { type LeasedScenario, leasedScenarios, PROCESSES } from '../scenarios/leased-scenarios.js'
import type { Outcome } from '../row.js'
import { type Grounds, listsOf, playAll } from '../scenarios/sequences.js'

/**
 * With leases no sequence of decisions is known beforehand. The answers of processes are held against what they booked:
 * the store decides their bookings as the model of the longer windows and smaller capacities does, every unit is served
 * by who booked it and within the ttl, nothing is served over the limits as declared, nothing is denied but what the
 * store denies, and all that is not kept back is given away.
 */
export async function promiseKept(
  { shapes, stores }: Grounds,
  { sequences, seed }: { readonly sequences: number; readonly seed: number },
): Promise<Outcome> {
  const figures: string[] = []
  let pass = true
  for (const [where, openStore] of Object.entries(stores)) {
    const total = { served: 0, denied: 0, fromMemory: 0 }
    const property = fc.asyncProperty(
      leasedScenarios(listsOf(shapes.filter(({ model }) => model.leased))),
      (scenario) => keep(openStore, scenario, total),
    )
    const { played, wrong } = await playAll(property, { sequences, seed })
    pass &&= wrong === undefined && total.fromMemory > 0 && total.denied > 0
    figures.push(
      `${where} ${total.served} served, ${total.fromMemory} of them from memory, ${total.denied} denied ` +
        `in ${played} sequences${wrong ? `, then ${wrong}` : ''}`,
    )
  }
  return { pass, figure: figures.join('; ') }
}

let names = 0

/**
 * Plays one scenario on a fleet with leases and checks its promises: no span serves too much, and nothing is served that was not booked.
 * Adds to `total` what was served, denied and served from memory.
 */
async function keep(
  openStore: OpenStore,
  scenario: LeasedScenario,
  total: Record<'served' | 'denied' | 'fromMemory', number>,
) {
  const { tiers, leases, delays, bursts } = scenario
  const fleet = await LeasedFleet.open(openStore, scenario, `traffic-${++names}`, delays)
  const start = fleet.timeline.now()
  let at = start
  for (const { from, gap, pace, process, tier, kind, cost, times } of bursts) {
    at = from === 'last' ? at + gap : Math.max(at, endOf(at, scenario) - gap)
    for (let i = 0; i < times; i++, at += pace)
      fleet.timeline.after(at - start, () => void fleet[kind](process, tier, cost))
  }
  await fleet.end()
  const wrong =
    fleet.wrong ??
    unbooked(leases.ttl * 1000, fleet.booked, fleet.served) ??
    // Limits that change between calls promise nothing of a span.
    (tiers.length === 1 ? excess(scenario, fleet.served) : undefined) ??
    (await heldBack(openStore, scenario))
  if (wrong) throw new Error(wrong)
  total.served += fleet.served.length
  total.denied += fleet.denied
  total.fromMemory += fleet.fromMemory
}

/** When the first policy's window is over, if it is one that begins at multiples of it. */
function endOf(at: number, { tiers }: LeasedScenario): number {
  const window = tiers[0]![0]!.window * 1000
  return (Math.floor(at / window) + 1) * window
}

/** At one instant, processes call in turn until each is denied: then nothing is left but what leases keep back. */
async function heldBack(openStore: OpenStore, scenario: LeasedScenario): Promise<string | undefined> {
  const fleet = await LeasedFleet.open(openStore, scenario, `in-full-${++names}`, [0])
  const asking = new Set(Array.from({ length: PROCESSES }, (_, process) => process))
  const all = (async () => {
    while (asking.size > 0) {
      for (const process of asking) if (!(await fleet.consume(process, 0, 1))) asking.delete(process)
    }
  })()
  await fleet.timeline.run()
  await all
  await fleet.end()
  const { shapes, tiers, leases } = scenario
  const rules = shapes.map((shape, i) => bookedBy(shape, tiers[0]![i]!, leases.ttl)!)
  const most = Math.min(...rules.map(({ capacity }) => Number(capacity)))
  if (fleet.served.length === most) return fleet.wrong
  return `${fleet.served.length} of ${most} units were served before each process was denied`
}
