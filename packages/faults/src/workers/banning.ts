import { createLimiter, type Limiter, type Policy, type Store } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { machineStore } from '@sluice/machine'
import { type Banned, type BanJob, LISTS, type Place } from './ban-jobs.js'
import { serve } from './fleet-member.js'

/* One process of a fleet that bans keys, for row 44. */

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
