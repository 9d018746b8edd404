import { type Deed, deedOf, type OpenStore } from '@sluice/testing/internal'
import { type GivenBack, MOST_COST, Player } from './given-back-worker.js'
import type { GivenBackScene } from './given-back-scenarios.js'

/**
 * Plays a scene and counts what was kept again: in the store, and apart from it in what stood in for it, the charges that
 * were kept obey the promise of every policy in every span. Throws where they do not.
 */
export async function keepPromise(openStore: OpenStore, scene: GivenBackScene, seen: GivenBack) {
  let now = scene.start
  const store = await openStore(() => now)
  const player = new Player(store, scene, seen)
  for (const [i, step] of scene.steps.entries()) {
    player.isDown = isIn(scene.outage, i)
    const told = await player.look()
    const deed = deedOf(step, now, player.policies, told, MOST_COST)
    now = deed.now
    // Calls that come often are served from a lease.
    const times = scene.leaseTtl === undefined || !OFTEN.has(deed.kind) ? 1 : step.parts
    for (let call = 0; call < times; call++) await player.perform(deed)
  }
  for (let i = 0; i < GREEDY; i++) {
    const { at } = await player.look()
    now = Math.max(now, at)
    await player.takeAll(now)
  }
  await player.end()
  await store.close()
}

/** So often all that is left is taken in the end, as soon as anything is: what was given back too much shows then. */
const GREEDY = 6

const OFTEN: ReadonlySet<Deed['kind']> = new Set(['consume', 'release'])

function isIn(outage: GivenBackScene['outage'], step: number): boolean {
  return outage !== undefined && step >= outage.from && step < outage.from + outage.steps
}
