import { createLimiter, fixedWindow, gcra, type LimiterOptions } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { command, type RedisServer, startRedis } from '@sluice/harness/redis'
import { observe } from '../src/index.js'
import { READERS, sum } from './readers.js'

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

describe.each(READERS)('with %s over Redis', (sdk, openReader) => {
  it('counts what was asked, and neither scripts that were sent again, turns that were confirmed, nor peeks', async () => {
    const reader = openReader()
    const store = redisStore({ host: server.host, port: server.port })
    const open = (options: Pick<LimiterOptions, 'name' | 'policies'>) => {
      const limiter = createLimiter({ ...options, store, deadline: '10s' })
      observe(limiter, reader.options)
      return limiter
    }
    const calls = open({ name: `calls ${sdk}`, policies: [fixedWindow({ limit: 15, window: '1h' })] })
    const turns = open({ name: `turns ${sdk}`, policies: [gcra({ limit: 3, window: '1s', burst: 1 })] })
    for (let i = 0; i < 20; i++) {
      if (i % 5 === 0) await command(server, 'SCRIPT', 'FLUSH')
      await calls.consume(`k${i % 2}`)
      await calls.peek('k0')
    }
    // The later two wait for more than 250 ms, and read once more whether their places stand.
    await Promise.all(['a', 'a', 'a'].map((key) => turns.acquire(key)))
    const decisions = await reader.read('decisions')
    expect(sum(decisions, { limiter: calls.name })).toBe(20)
    expect(sum(decisions, { limiter: turns.name })).toBe(3)
    expect(sum(await reader.read('evaluations'))).toBe(23)
    expect(sum(await reader.read('utilization'))).toBe(23)
    expect(sum(await reader.read('acquireDuration'))).toBe(3)
    await calls.close()
    await turns.close()
    await store.close()
    await reader.close()
  })
})
