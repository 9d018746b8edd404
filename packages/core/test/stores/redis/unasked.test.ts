import {
  consumeAll,
  createLimiter,
  fixedWindow,
  gcra,
  type Limiter,
  memoryStore,
  slidingLog,
} from '../../../src/index.js'
import { redisStore } from '../../../src/stores/redis/index.js'
import { oneRedis } from './one-redis.js'

const { client } = oneRedis()

let limiters: Limiter[] = []
afterEach(async () => {
  for (const limiter of limiters) await limiter.close()
  limiters = []
})

/** Two limiters of one store, one of which lets a call in 1.5 s pass and the other three in an hour. */
function open(store: ReturnType<typeof redisStore> | ReturnType<typeof memoryStore>, name: string) {
  const settings = { store, deadline: '10s', onStoreError: 'throw' } as const
  const strict = gcra({ limit: 2, window: '3s', burst: 1 })
  const made = [
    createLimiter({ ...settings, name: `strict ${name}`, policies: [strict] }),
    createLimiter({
      ...settings,
      name: `hourly ${name}`,
      policies: [slidingLog({ limit: 3, window: '1h' })],
    }),
  ] as const
  limiters.push(...made)
  return made
}

it('a whole whose first key is remembered as denied waits for the second one, too', async () => {
  const [strict, hourly] = open(redisStore(client), 'a')
  const call = () => consumeAll([strict, hourly].map((limiter) => ({ limiter, key: 'k' })))
  for (let i = 0; i < 3; i++) await hourly.consume('k')
  await strict.consume('k')
  expect((await strict.consume('k')).retryAfterMs).toBeLessThanOrEqual(1500)
  for (let i = 0; i < 3; i++) {
    const whole = await call()
    expect(whole.retryAfterMs).toBeGreaterThan(3_500_000)
    expect(whole.denied?.limiter).toBe('hourly a')
  }
})

it('a cost above the capacity is denied with the fields that memory answers', async () => {
  let now = Date.UTC(2026, 0, 1) * 1000
  const clock = () => now
  const stores = [redisStore(client, { clock }), memoryStore({ clock })]
  const policies = [
    gcra({ limit: 10, window: '10s' }),
    fixedWindow({ limit: 5, window: '1h', name: 'least' }),
  ]
  const [redis, memory] = await Promise.all(
    stores.map(async (store) => {
      const limiter = createLimiter({ name: 'fields', policies, store, deadline: '10s' })
      limiters.push(limiter)
      await limiter.consume('k', { cost: 3 })
      return limiter
    }),
  )
  for (let second = 0; second < 3; second++) {
    now += 1_000_000
    for (const cost of [6, 7, 11]) {
      const [actual, expected] = [await redis!.consume('k', { cost }), await memory!.consume('k', { cost })]
      expect(actual.toJSON()).toEqual(expected.toJSON())
      expect(actual).toMatchObject({ reason: 'cost', remaining: 2 })
    }
  }
})
