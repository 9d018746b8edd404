import type { Store } from '@sluice/core'
import { redisStore, type RedisStoreOptions } from '@sluice/core/redis'
import { Cluster as Ioredis } from 'ioredis'
import { Cluster as Iovalkey } from 'iovalkey'
import { createCluster } from 'redis'
import type { Address } from '@sluice/harness/redis'

export interface ClusterClient {
  readonly name: string
  readonly store: Store
  close(): unknown
}

/**
 * A store over each client that speaks to a Cluster, with what CLIENT_REPLAYS asks for. A short disconnectTimeout and
 * reconnectStrategy let a process end where a node is dead: else the clients' own timers keep it for two seconds.
 */
export async function openClients(
  nodes: readonly Address[],
  storeOptions: RedisStoreOptions = {},
): Promise<ClusterClient[]> {
  const cluster = nodes.map(({ host, port }) => ({ host, port }))
  const options = { retryDelayOnFailover: 0, redisOptions: { disconnectTimeout: 20 } }
  const ioredis = new Ioredis(cluster, options)
  const iovalkey = new Iovalkey(cluster, options)
  const nodeRedis = createCluster({
    rootNodes: cluster.map((socket) => ({ socket })),
    defaults: { socket: { reconnectStrategy: () => 50 } },
  })
  const own = redisStore({ cluster }, storeOptions)
  const clients = [
    { name: 'own', store: own, close: () => own.close() },
    { name: 'ioredis', store: redisStore(ioredis, storeOptions), close: () => ioredis.disconnect() },
    { name: 'iovalkey', store: redisStore(iovalkey, storeOptions), close: () => iovalkey.disconnect() },
    { name: 'node-redis', store: redisStore(nodeRedis, storeOptions), close: () => nodeRedis.destroy() },
  ]
  await nodeRedis.connect()
  return clients
}
