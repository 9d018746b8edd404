import { Redis } from 'ioredis'
import assert from 'node:assert/strict'
import type { Limiter, LimiterOptions, Store } from '@sluice/core'
import type { Copy, Pair, RedisAddress } from './copy.js'

type Case = (pair: Pair, redis: RedisAddress) => Promise<void>

/** Far above what any call takes, as none of this is about time. */
const PATIENT = { deadline: '10s' } as const
let names = 0

/** A store of one copy that limiters and semaphores of both use. */
export const stores: Readonly<Record<string, Case>> = {
  'memory keeps one limit': (pair) => withMemory(pair, (store) => oneLimit(pair, store)),
  'Redis keeps one limit': (pair, redis) => withRedis(pair, redis, (store) => oneLimit(pair, store)),
  'Redis keeps one limit under leases': (pair, redis) =>
    withRedis(pair, redis, (store) => oneLimit(pair, store, { leases: { ttl: '100ms' } })),
  'a reset by one is seen by the other': (pair, redis) =>
    withRedis(pair, redis, async (store) => {
      const [one, other] = limitersOn(pair, store, 1)
      assert.equal(await admitted([one, one, other], 3), 1)
      await other.reset('caller')
      assert.equal(await admitted([one], 2), 1, 'after a reset')
    }),
  'an outage gives one local limit': (pair, redis) =>
    withRedis(pair, redis, async (store, client) => {
      const both = limitersOn(pair, store, 4)
      client.disconnect()
      assert.equal(await admitted(both, 12), 4)
    }),
  'a cost too large for a log is an InputError': (pair, redis) =>
    withRedis(pair, redis, async (store) => {
      const [, used] = pair
      const policies = [used.core.slidingLog({ limit: 5000, window: '1d' })]
      const limiter = used.core.createLimiter({ name: `mixed ${++names}`, policies, store, ...PATIENT })
      const error = await limiter.consume('caller', { cost: 1001 }).catch((failure: unknown) => failure)
      assert.equal((error as { code?: string }).code, 'INVALID_COST')
      await limiter.charge('caller', { cost: 2500 })
      assert.equal((await limiter.peek('caller')).remaining, 2500)
    }),
  'a client that replays is reported once': async (pair, redis) => {
    const client = new Redis({ ...redis, maxRetriesPerRequest: 3 })
    const heard: string[] = []
    for (const { core, redis: entry } of pair) {
      const store = entry.redisStore(client)
      const policies = [core.gcra({ limit: 5, window: '1d' })]
      const limiter = core.createLimiter({ name: `mixed ${++names}`, policies, store, ...PATIENT })
      limiter.on('warning', ({ code }) => heard.push(code))
      await limiter.consume('caller')
      await store.close()
    }
    client.disconnect()
    assert.deepEqual(heard, ['CLIENT_REPLAYS'])
  },
  'memory keeps one count of places': (pair) => withMemory(pair, (store) => onePlace(pair, store)),
  'Redis keeps one count of places': (pair, redis) =>
    withRedis(pair, redis, (store) => onePlace(pair, store)),
}

/** Lets `act` work with a memory store of the first copy. */
async function withMemory([made]: Pair, act: (store: Store) => Promise<void>): Promise<void> {
  const store = made.core.memoryStore()
  await act(store)
  await store.close()
}

/** Lets `act` work with a store of the first copy on a client of its own. */
async function withRedis(
  [made]: Pair,
  redis: RedisAddress,
  act: (store: Store, client: Redis) => Promise<void>,
): Promise<void> {
  const client = new Redis({ ...redis, maxRetriesPerRequest: 0 })
  client.on('error', () => {})
  await client.ping()
  const store = made.redis.redisStore(client)
  await act(store, client)
  await store.close()
  client.disconnect()
}

/** A limiter of each copy on one store, under one name and limit. */
function limitersOn(
  pair: Pair,
  store: Store,
  limit: number,
  more: Partial<LimiterOptions> = {},
): [Limiter, Limiter] {
  const name = `mixed ${++names}`
  const make = ({ core }: Copy): Limiter =>
    core.createLimiter({
      name,
      policies: [core.slidingLog({ limit, window: '1d' })],
      store,
      ...PATIENT,
      ...more,
    })
  return [make(pair[0]), make(pair[1])]
}

/** Asserts that limiters of two copies share one limit. */
async function oneLimit(pair: Pair, store: Store, more?: Partial<LimiterOptions>): Promise<void> {
  const both = limitersOn(pair, store, 5, more)
  assert.equal(await admitted(both, 14), 5)
  for (const limiter of both) await limiter.close()
}

/** How many of the calls pass that the limiters make in turn. */
async function admitted(limiters: readonly Limiter[], calls: number): Promise<number> {
  let count = 0
  for (let i = 0; i < calls; i++)
    if ((await limiters[i % limiters.length]!.consume('caller')).allowed) count++
  return count
}

/** Asserts that semaphores of two copies share one permit, and that the one is served when the other releases it. */
async function onePlace([made, used]: Pair, store: Store): Promise<void> {
  const options = { name: `mixed ${++names}`, limit: 1, store, ...PATIENT }
  const [one, other] = [made.core.createSemaphore(options), used.core.createSemaphore(options)]
  const held = await other.acquire('', { maxWait: 0 })
  assert.equal(held.allowed, true)
  assert.equal((await one.acquire('', { maxWait: 0 })).allowed, false)
  const waiting = one.acquire('', { maxWait: '20s' })
  await held.release()
  assert.equal((await waiting).allowed, true)
  await Promise.all([one.close(), other.close()])
}
