import { Redis } from 'ioredis'
import { conformance } from '@sluice/testing/internal'
import { type RedisServer, startRedis } from '@sluice/harness/redis'
import { redisStore } from '../../../src/stores/redis/index.js'

jest.setTimeout(60_000)

let server: RedisServer
let client: Redis
beforeAll(async () => {
  server = await startRedis()
  client = new Redis({ host: server.host, port: server.port, maxRetriesPerRequest: 0 })
})
afterAll(async () => {
  client.disconnect()
  await server.stop()
})

conformance('Redis', (clock) => redisStore(client, { clock }), {
  lawRuns: 10,
  mostCost: (shapes) => (shapes.some(({ title }) => title === 'sliding-log') ? 1000 : 2 ** 31),
})
