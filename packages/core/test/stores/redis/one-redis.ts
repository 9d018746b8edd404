import { Redis, type RedisOptions } from 'ioredis'
import type { Store } from '../../../src/stores/store.js'
import { type RedisServer, startRedis } from '@sluice/harness/redis'

/** A store of which no records are read, so that the commands of calls can be counted. */
export function withoutRecords<S extends Store>(store: S): S {
  return Object.assign(store, { records: undefined })
}

/** One server for all tests of a file, and a client of it that replays nothing. Both can be used once the tests run. */
export function oneRedis(options: Pick<RedisOptions, 'retryStrategy'> = {}): {
  readonly server: RedisServer
  readonly client: Redis
} {
  const server = {} as RedisServer
  const client = new Redis({ maxRetriesPerRequest: 0, ...options, lazyConnect: true })
  beforeAll(async () => {
    const started = await startRedis()
    Object.defineProperties(server, Object.getOwnPropertyDescriptors(started))
    Object.assign(client.options, { host: started.host, port: started.port })
    await client.connect()
  })
  afterAll(async () => {
    client.disconnect()
    await server.stop()
  })
  return { server, client }
}
