import { type Operation, operationOf, type OpenStore } from '@sluice/testing/internal'
import { type GivenBack, MOST_COST, Worker } from './given-back-worker.js'
import type { GivenBackScenario } from './given-back-scenarios.js'

/**
 * Plays a scenario and counts what was kept again: in the store, and apart from it in what stood in for it, the charges that
 * were kept obey the promise of every policy in every span. Throws where they do not.
 */
export async function keepPromise(openStore: OpenStore, scenario: GivenBackScenario, seen: GivenBack) {
  let now = scenario.start
  const store = await openStore(() => now)
  const worker = new Worker(store, scenario, seen)
  for (const [i, step] of scenario.steps.entries()) {
    worker.isDown = isIn(scenario.outage, i)
    const looked = await worker.look()
    const operation = operationOf(step, now, worker.policies, looked, MOST_COST)
    now = operation.now
    // Calls that come often are served from a lease.
    const times = scenario.leaseTtl === undefined || !OFTEN.has(operation.kind) ? 1 : step.parts
    for (let call = 0; call < times; call++) await worker.perform(operation)
  }
  for (let i = 0; i < GREEDY; i++) {
    const { at } = await worker.look()
    now = Math.max(now, at)
    await worker.takeAll(now)
  }
  await worker.end()
  await store.close()
}

/** So often all that is left is taken in the end, as soon as anything is: what was given back too much shows then. */
const GREEDY = 6

const OFTEN: ReadonlySet<Operation['kind']> = new Set(['consume', 'release'])

/** Whether a step, by its number, falls into the outage. */
function isIn(outage: GivenBackScenario['outage'], step: number): boolean {
  return outage !== undefined && step >= outage.from && step < outage.from + outage.steps
}
