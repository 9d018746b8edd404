import { createLimiter, type Limiter, type LimiterOptions, slidingLog } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import type { Store } from '@sluice/core/store'
import { freePort } from '../redis/free-port.js'
import { type RedisServer, startRedis } from '../redis/redis-server.js'
import { until } from '../redis/until.js'
import { expectWarnings } from '../warnings/index.js'
import type { Adapter } from './adapter.js'
import type { Serve } from './site.js'

const GENEROUS = { deadline: '10s', onStoreError: 'throw' } as const

/** Declares the tests that every adapter has to pass about limits whose state is in Redis: they are exact for requests at once, and charges are given back. */
export function redisCases<Req, Res>(_adapter: Adapter<Req, Res>, serve: Serve<Req, Res>): void {
  describe('with the state in Redis', () => {
    let server: RedisServer
    let store: Store
    const open: Store[] = []
    let limiters = 0
    beforeAll(async () => {
      server = await startRedis()
      store = redisStore({ host: server.host, port: server.port })
      open.push(store)
    })
    afterAll(async () => {
      for (const each of open) await each.close()
      await server.stop()
    })
    const shared = (options: Partial<LimiterOptions>): Limiter => {
      const policies = [slidingLog({ limit: 20, window: '1h' })]
      return createLimiter({ name: `api-${++limiters}`, policies, store, ...options })
    }

    it('exactly the limit of 40 requests at once is admitted', async () => {
      const site = await serve([{ limiter: shared(GENEROUS), key: () => 'k' }])
      const replies = await Promise.all(Array.from({ length: 40 }, () => site.send()))
      const left = replies
        .filter(({ status }) => status === 200)
        .map(({ headers }) => Number(headers['x-ratelimit-remaining']))
      expect(left.sort((a, b) => b - a)).toEqual(Array.from({ length: 20 }, (_, i) => 19 - i))
      expect(replies.filter(({ status }) => status === 429)).toHaveLength(20)
    })

    it('of 40 requests at once under two limits each passes both, or is charged under none', async () => {
      const [wide, narrow] = [shared(GENEROUS), shared(GENEROUS)]
      const limits = [
        { limiter: wide, key: () => 'tenant' },
        { limiter: narrow, key: () => 'user', cost: () => 4 },
      ]
      const site = await serve([{ limits }])
      const replies = await Promise.all(Array.from({ length: 40 }, () => site.send()))
      expect(replies.filter(({ status }) => status === 200)).toHaveLength(5)
      expect(site.handled).toBe(5)
      expect((await wide.peek('tenant')).remaining).toBe(15)
    })

    it.each([
      ['allow', 'allow', [200, 200]],
      ['allow', 'deny', [503, 503]],
      ['deny', 'local', [503, 503]],
      ['allow', 'local', [200, 429]],
      ['local', 'throw', [500, 500]],
    ] as const)('limits together with onStoreError %s and %s answer %j', async (one, other, statuses) => {
      expectWarnings(['STORE_DEGRADED'])
      const gone = redisStore({ host: server.host, port: await freePort() })
      open.push(gone)
      const part = { key: () => 'k', limit: 1, window: '1h', store: gone } as const
      const limits = [
        { ...part, name: 'one', onStoreError: one },
        { ...part, name: 'other', onStoreError: other },
      ]
      const site = await serve([{ limits }])
      expect(await site.statuses([{}, {}])).toEqual(statuses)
    })

    it('a charge is given back by outcome', async () => {
      const limiter = shared(GENEROUS)
      const site = await serve([{ limiter, key: () => 'k', shouldCharge: async () => false }])
      await site.send()
      await until('the charge to be given back', async () => (await limiter.peek('k')).remaining === 20)
      expect(site.handled).toBe(1)
    })

    it.each([
      ['local', [200, 429]],
      ['allow', [200, 200]],
      ['deny', [503, 503]],
      ['throw', [500, 500]],
    ] as const)('an unreachable Redis with onStoreError %s answers %j', async (onStoreError, statuses) => {
      expectWarnings(['STORE_DEGRADED'])
      const gone = redisStore({ host: server.host, port: await freePort() })
      open.push(gone)
      const policies = [slidingLog({ limit: 1, window: '1h' })]
      const limiter = createLimiter({ name: 'gone', policies, store: gone, onStoreError })
      const site = await serve([{ limiter, key: () => 'k' }])
      expect(await site.statuses([{}, {}])).toEqual(statuses)
    })
  })
}
