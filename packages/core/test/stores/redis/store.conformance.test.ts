import { conformance, mostCost } from '@sluice/testing/internal'
import { redisStore } from '../../../src/stores/redis/index.js'
import { oneRedis } from './one-redis.js'

jest.setTimeout(60_000)

const { client } = oneRedis()

conformance('Redis', (clock) => redisStore(client, { clock }), {
  lawRuns: 10,
  mostCost,
})
