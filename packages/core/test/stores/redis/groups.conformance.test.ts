import { Cluster as Ioredis } from 'ioredis'
import { conformance, mostCost } from '@sluice/testing/internal'
import { type Cluster, startCluster } from '@sluice/harness/redis'
import { redisStore } from '../../../src/stores/redis/index.js'

jest.setTimeout(60_000)

let cluster: Cluster
let client: Ioredis
beforeAll(async () => {
  cluster = await startCluster({ masters: 3 })
  const nodes = cluster.masters.map(({ host, port }) => ({ host, port }))
  client = new Ioredis(nodes, { retryDelayOnFailover: 0 })
})
afterAll(async () => {
  client.disconnect()
  await cluster.stop()
})

conformance('Redis Cluster with groups', (clock) => redisStore(client, { clock, groups: 16 }), {
  sequences: 500,
  lawRuns: 4,
  mostCost,
})
