import {
  createLimiter,
  gcra,
  type Policy,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '../../../src/index.js'
import { redisStore } from '../../../src/stores/redis/index.js'
import { oneRedis } from './one-redis.js'

/*
 * What Redis takes for one caller, as MEMORY USAGE has it: key, value and what Redis itself keeps of each.
 */

const { client } = oneRedis()
const minute = { limit: 100, window: '1m' } as const

/** The bytes of the key of a caller, and of its value, after these calls. */
async function bytesOf(
  policy: Policy,
  calls = 1,
  then?: (limiter: ReturnType<typeof createLimiter>) => unknown,
) {
  await client.flushall()
  const store = redisStore(client, { denialCache: false })
  const limiter = createLimiter({ name: 'api', policies: [policy], store, onStoreError: 'throw' })
  for (let i = 0; i < calls; i++) await limiter.consume('user:100000')
  await then?.(limiter)
  const [key] = await client.keys('sluice:4:api:*:user:100000')
  return { used: await client.memory('USAGE', key!), value: await client.strlen(key!) }
}

it.each([
  ['gcra', gcra(minute), 1, 168],
  ['a token bucket', tokenBucket(minute), 1, 176],
  ['a sliding window', slidingWindow(minute), 1, 264],
  ['a log of three entries', slidingLog(minute), 3, 216],
] as const)('a key takes few: %s', async (_, policy, calls, most) => {
  const { used } = await bytesOf(policy, calls)
  expect(used).toBeLessThanOrEqual(most)
})

it('a key takes 32 more once it was restricted, and no other correction adds any', async () => {
  const plain = (await bytesOf(gcra(minute))).value
  const decided = async (limiter: ReturnType<typeof createLimiter>) => {
    const decision = await limiter.consume('user:100000', { cost: 5 })
    await decision.settle(2)
    await limiter.charge('user:100000')
    await limiter.refund('user:100000')
    await limiter.unblock('user:100000')
  }
  expect((await bytesOf(gcra(minute), 1, decided)).value).toBe(plain)
  for (const restrict of ['block', 'hold'] as const) {
    const { value } = await bytesOf(gcra(minute), 1, (limiter) => limiter[restrict]('user:100000', '1s'))
    expect(value).toBe(plain + 32)
  }
  const booked = await bytesOf(gcra({ limit: 10, window: '1s', burst: 1 }), 1, (limiter) =>
    limiter.acquire('user:100000'),
  )
  expect(booked.value).toBe(plain + 32)
})
