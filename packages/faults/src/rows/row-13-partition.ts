import { redisStore } from '@sluice/core/redis'
import { startProxy, startRedis } from '@sluice/harness/redis'
import { sitOut } from '../outage.js'
import type { Outcome, Row, Watch } from '../row.js'

/** The network swallows what is sent, in both directions, and closes nothing. */
export const row: Row = {
  number: 13,
  fault: 'partition',
  timed: true,
  warnings: ['STORE_DEGRADED', 'STORE_RECOVERED'],
  run: partition,
}

/**
 * Cuts the network so that nothing passes and nothing closes. Passes if all calls are answered in time, and by Redis again
 * soon after. `share` is the part of the full load, 0 to 1.
 */
async function partition(share: number, watch?: Watch): Promise<Outcome> {
  const lastsMs = Math.max(500, 2000 * share)
  const server = await startRedis()
  const proxy = await startProxy(server)
  const store = redisStore({ host: proxy.host, port: proxy.port })
  const outage = {
    title: 'nothing passes, nothing closes',
    begin: () => proxy.blackHole(),
    end: () => proxy.heal(),
    lastsMs,
  }
  const outcome = await sitOut(store, outage, watch)
  await store.close()
  await proxy.close()
  await server.stop()
  return outcome
}
