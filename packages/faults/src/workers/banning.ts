import { createLimiter, gcra, type Limiter, type Policy, slidingLog, type Store } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { machineStore } from '@sluice/machine'
import type { Address } from '@sluice/harness/redis'
import { serve } from './fleet-member.js'

/* One process of a fleet that bans keys, for row 44. */

/** No call of the row reaches it. */
export const LARGE = 10_000
/** The lists that calls bring: their shapes differ, so each has a state of its own. */
export const LISTS = {
  free: [gcra({ limit: 2, window: '1d' })],
  paid: [slidingLog({ limit: LARGE, window: '1d' })],
  team: [slidingLog({ limit: LARGE, window: '1h' }), gcra({ limit: LARGE, window: '1d' })],
} as const satisfies Readonly<Record<string, readonly Policy[]>>

export type Place =
  { readonly redis: Address } | { readonly cluster: readonly Address[] } | { readonly folder: string }

/** Nothing to open: the limiter of the job before is used. */
export interface BanJob {
  readonly place?: Place
  readonly act: 'block' | 'unblock' | keyof typeof LISTS
  readonly keys: readonly string[]
}

/** Of the calls of one job, one for each key. */
export interface Banned {
  readonly admitted: number
  readonly blocked: number
  readonly degraded: number
  /** The smallest number of units that were left. */
  readonly remaining: number
}

let store: Store | undefined
let limiter: Limiter

serve<BanJob, Banned>(async ({ place, act, keys }) => {
  if (place) {
    await store?.close()
    store = opened(place)
    limiter = createLimiter({
      name: 'banning',
      policies: LISTS.free,
      tiers: [LISTS.paid, LISTS.team],
      penalty: { block: '1h' },
      deadline: '10s',
      store,
    })
  }
  return async () => {
    if (act === 'block') await Promise.all(keys.map((key) => limiter.block(key, '1h')))
    else if (act === 'unblock') await Promise.all(keys.map((key) => limiter.unblock(key)))
    else return called(keys, LISTS[act])
    return { admitted: 0, blocked: 0, degraded: 0, remaining: 0 }
  }
})

/** Every call asks the store, so that it sees at once what another process has done. */
function opened(place: Place): Store {
  const denialCache = false
  if ('folder' in place) return machineStore({ name: 'banning', folder: place.folder, denialCache })
  return redisStore('redis' in place ? place.redis : { cluster: place.cluster }, { denialCache })
}

/** Calls each key once, and counts what became of the calls. */
async function called(keys: readonly string[], policies: readonly Policy[]): Promise<Banned> {
  const decisions = await Promise.all(keys.map((key) => limiter.consume(key, { policies })))
  return {
    admitted: decisions.filter(({ allowed }) => allowed).length,
    blocked: decisions.filter(({ reason }) => reason === 'blocked').length,
    degraded: decisions.filter(({ degraded }) => degraded !== undefined).length,
    remaining: Math.min(...decisions.map(({ remaining }) => remaining)),
  }
}
