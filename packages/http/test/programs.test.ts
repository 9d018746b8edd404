import { redisStore } from '@sluice/core/redis'
import { command, type RedisServer, startRedis } from '@sluice/harness/redis'
import { guardOf, pass } from './plain-platform.js'

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

describe('limits that a request may skip', () => {
  it('have one script for all requests, whichever of them each skips', async () => {
    const store = redisStore({ host: server.host, port: server.port })
    const limits = Array.from({ length: 8 }, (_, i) => ({
      name: `limit-${i}`,
      limit: 1000,
      window: `${60 + i}s` as const,
      skip: ({ headers }: { headers?: Readonly<Record<string, string>> }) => headers?.['limits']?.[i] === '0',
    }))
    const guard = guardOf({ limits, store, onStoreError: 'throw', deadline: '10s' })
    for (let subset = 0; subset < 256; subset++) {
      const bits = subset.toString(2).padStart(8, '0')
      const { status } = await pass([guard], { address: '192.0.2.1', headers: { limits: bits } })
      expect(status).toBe(200)
    }
    await store.close()
    const memory = String(await command(server, 'INFO', 'memory'))
    // Those of the limits together, of each limit alone, the one that asks whether keys are evicted, and that of records.
    expect(memory).toMatch(/number_of_cached_scripts:11\r/)
  })
})
