import { createLimiter, type Limiter, slidingLog } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import {
  type Address,
  command,
  pause,
  startProxy,
  startRedis,
  startReplica,
  until,
} from '@sluice/harness/redis'
import type { Outcome } from '../row.js'
import { mayBeLost, startTraffic } from './row-12-traffic.js'

const LIMIT = 50_000

/** A replica that is `lagMs` behind takes over from a master that dies: it never saw the script. */
export async function promotion(lagMs: number, loadMs: number): Promise<Outcome> {
  const master = await startRedis()
  const link = await startProxy(master)
  const replica = await startReplica(master, { through: link })
  try {
    const before = limiterAt(master)
    await before.limiter.consume('user')
    await until('replication to flow', async () => (await command<number>(replica, 'DBSIZE')) > 0)
    link.latency(lagMs, 'to-client')
    const traffic = startTraffic(before.limiter, 'user')
    await pause(lagMs + loadMs)
    const diedAt = performance.now()
    await master.kill()
    await replica.promote()
    await traffic.stop()
    await before.close()
    const after = limiterAt(replica)
    const { remaining } = await after.limiter.consume('user')
    await after.close()
    const admitted = 1 + traffic.admissions.length
    const lost = Math.max(0, admitted - (LIMIT - remaining - 1))
    const most = mayBeLost(traffic, diedAt, lagMs)
    return { pass: lost <= most, figure: `lag ${lagMs} ms: lost ${lost} of ${admitted} (bar ${most})` }
  } finally {
    await link.close()
    await Promise.all([master.stop(), replica.stop()])
  }
}

/** A limiter with a store of its own on one server, which fails where the store does not answer. */
function limiterAt({ host, port }: Address): { limiter: Limiter; close(): Promise<void> } {
  const store = redisStore({ host, port })
  const limiter = createLimiter({
    name: 'failover',
    store,
    policies: [slidingLog({ limit: LIMIT, window: '1d' })],
    deadline: '10s',
    onStoreError: 'throw',
  })
  return {
    limiter,
    async close() {
      await limiter.close()
      await store.close()
    },
  }
}
