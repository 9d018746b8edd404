import { consumeAll, createLimiter, createSemaphore, gcra, slidingLog } from '../../../src/index.js'
import { hashTags } from '../../../src/stores/redis/hash-tags.js'
import { redisStore, type RedisStoreOptions } from '../../../src/stores/redis/index.js'
import { command, startCluster } from '@sluice/harness/redis'
import { oneRedis } from './one-redis.js'

jest.setTimeout(60_000)

const { server, client } = oneRedis()

const users = (count: number) => Array.from({ length: count }, (_, i) => `user:${i}`)

function limiterIn(groups: number | undefined, name: string) {
  const store = redisStore(client, groups ? { groups } : {})
  const policies = [gcra({ limit: 10, window: '1h' })]
  const tiers = [[slidingLog({ limit: 10, window: '1h' })]]
  return createLimiter({ name, policies, tiers, store, deadline: '5s', onStoreError: 'throw' })
}

const keysOf = (name: string) => command<string[]>(server, 'KEYS', `*:${name}:*`)

describe('the tags of groups', () => {
  it('lie in one each of as many equal parts of the slots', async () => {
    const cluster = await startCluster({ masters: 1 })
    for (const groups of [2, 3, 16, 100]) {
      const tags = new Set(users(100 * groups).map(hashTags(groups)))
      const slots = await Promise.all([...tags].map((tag) => cluster.slotOf(tag)))
      const parts = slots.map((slot) => Math.floor((slot * groups) / 16_384)).toSorted((a, b) => a - b)
      expect(parts).toEqual(Array.from({ length: groups }, (_, i) => i))
    }
    await cluster.stop()
  })

  it.each([
    ['numbered', (i: number) => `user:${i}`],
    ['addresses', (i: number) => `ip:10.${i % 7}.${i >> 8}.${i & 255}`],
    ['of other scripts', (i: number) => `用户:${i}`],
    ['that differ in their last character alone', (i: number) => `key ${String.fromCharCode(0x4e00 + i)}`],
  ])('hold equally many callers, but for a third: %s', (_, keyOf) => {
    const sizes = new Map<string, number>()
    const tagOf = hashTags(16)
    for (let i = 0; i < 16_000; i++) sizes.set(tagOf(keyOf(i)), (sizes.get(tagOf(keyOf(i))) ?? 0) + 1)
    expect(sizes.size).toBe(16)
    expect(Math.min(...sizes.values())).toBeGreaterThan(667)
    expect(Math.max(...sizes.values())).toBeLessThan(1333)
  })

  it('stay as they are, as they are part of the keys in Redis', () => {
    expect(['user:1', 'user:2', 'é', '用户', ''].map(hashTags(16))).toMatchInlineSnapshot(`
     [
       "{16.60}:",
       "{16.63}:",
       "{16.1}:",
       "{16.61}:",
       "{16.13}:",
     ]
    `)
  })
})

describe('a store with groups', () => {
  it('puts the number of groups into every key, after the shapes', async () => {
    await limiterIn(16, 'tagged').consume('user:1')
    expect(await keysOf('tagged')).toEqual([expect.stringMatching(/:tagged:gcra\/1h:\{16\.\d+\}:user:1$/)])
  })

  it('keeps another state for another number of groups, and for none', async () => {
    for (const groups of [undefined, 16, 64]) {
      const { remaining } = await limiterIn(groups, 'rolling').consume('user:1')
      expect(remaining).toBe(9)
    }
  })

  it('lets all lists of a caller lie in one group, so that block and reset reach them in one slot', async () => {
    const limiter = limiterIn(16, 'lists')
    const policies = [slidingLog({ limit: 10, window: '1h' })]
    await limiter.consume('user:1')
    await limiter.consume('user:1', { policies })
    const tags = (await keysOf('lists')).map((key) => /\{.*\}/.exec(key)![0])
    expect(tags).toHaveLength(2)
    expect(new Set(tags).size).toBe(1)
    await limiter.block('user:1', '1h')
    expect((await limiter.consume('user:1', { policies })).reason).toBe('blocked')
    await limiter.reset('user:1')
    expect(await keysOf('lists')).toEqual([])
  })

  it('charges the keys of a call on several in the groups of their callers', async () => {
    const store = redisStore(client, { groups: 16 })
    const settings = { policies: [gcra({ limit: 10, window: '1h' })], store, deadline: '5s' } as const
    const [one, other] = ['one', 'other'].map((name) => createLimiter({ name, ...settings }))
    const call = () => consumeAll([one!, other!].map((limiter) => ({ limiter, key: 'user:1' })))
    await one!.consume('user:1')
    expect((await call()).decisions).toMatchObject([{ remaining: 8 }, { remaining: 9 }])
    expect(await keysOf('one')).toHaveLength(1)
  })

  it('leaves the keys of semaphores and boards without a tag', async () => {
    const store = redisStore(client, { groups: 16 })
    const permit = await createSemaphore({ name: 'jobs', limit: 1, lease: '1m', store }).acquire('k')
    await store.board!('notes').post('author', 'text', 1000)
    expect(await keysOf('jobs')).toEqual(['sluice:4:jobs:semaphore:k'])
    expect(await keysOf('notes')).toEqual(['sluice:4:notes:board:'])
    await permit.release()
  })

  it.each([0, 1, 1.5, 1025, '16', null])('refuses groups: %p', (groups) => {
    expect(() => redisStore(client, { groups } as RedisStoreOptions)).toThrow(
      expect.objectContaining({
        code: 'INVALID_OPTION',
        message: expect.stringMatching(/groups .*a whole number from 2 to 1024/),
      }),
    )
  })
})
