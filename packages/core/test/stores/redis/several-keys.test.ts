import { Cluster as IoredisCluster, Redis } from 'ioredis'
import { type Cluster, monitor, startCluster } from '@sluice/harness/redis'
import {
  consumeAll,
  createLimiter,
  fixedWindow,
  gcra,
  type Limiter,
  type Policy,
  slidingLog,
  slidingWindow,
  type Store,
  tokenBucket,
} from '../../../src/index.js'
import { redisStore } from '../../../src/stores/redis/index.js'
import { oneRedis } from './one-redis.js'
import { expectWarnings } from '@sluice/harness/warnings'

jest.setTimeout(60_000)

const settings = { onStoreError: 'throw', deadline: '10s' } as const
const LISTS: readonly (readonly [string, (limit: number) => Policy])[] = [
  ['gcra', (limit) => gcra({ limit, window: '1h' })],
  ['a sliding log', (limit) => slidingLog({ limit, window: '1h' })],
]
const limiterOf = (name: string, policy: Policy, store: Store): Limiter =>
  createLimiter({ name, policies: [policy], store, ...settings })
const usedOf = async (limiter: Limiter, key: string): Promise<number> => {
  const { limit, remaining } = await limiter.peek(key)
  return limit - remaining
}

describe.each(LISTS)('several keys under %s on one server', (_, policy) => {
  const { server, client } = oneRedis()
  let store: Store
  let limiters: readonly [tenants: Limiter, users: Limiter]
  beforeAll(() => {
    store = redisStore(client, { denialCache: false })
    limiters = [
      limiterOf('tenants', policy(50), store),
      limiterOf('users', gcra({ limit: 40, window: '1h' }), store),
    ]
  })
  beforeEach(async () => {
    expectWarnings([], { perhaps: ['STORE_DEGRADED', 'STORE_RECOVERED'] }) // of one store, at most once a minute
    await client.flushall()
  })
  const call = (user = 'ada') =>
    consumeAll(limiters.map((limiter, i) => ({ limiter, key: i === 0 ? 'acme' : user })))

  it('take one script call for the whole', async () => {
    await call()
    const watching = await monitor(server)
    for (let i = 0; i < 60; i++) expect((await call()).allowed).toBe(i < 39)
    // Beside these a store reads its records once a second.
    const calls = (await watching.stop()).filter(
      (line) => /"evalsha"/i.test(line) && !line.includes(':records:'),
    )
    expect(calls).toHaveLength(60)
    expect([await usedOf(limiters[0], 'acme'), await usedOf(limiters[1], 'ada')]).toEqual([40, 40])
  })

  it('say what was used of a key that is only read, and of one above its limit', async () => {
    await limiters[0].charge('acme', { cost: 60 })
    const costs = [0, 1]
    const whole = await consumeAll(
      limiters.map((limiter, i) => ({ limiter, key: ['acme', 'ada'][i]!, cost: costs[i]! })),
    )
    const used = whole.decisions.map(({ policies }) => policies[0]!.used)
    expect([whole.allowed, ...used]).toEqual([true, 60, 1])
  })

  it('are exact where several clients race for them in batches', async () => {
    const others = Array.from({ length: 3 }, () => new Redis(server.port, { maxRetriesPerRequest: 0 }))
    try {
      const fleets = [client, ...others].map((each) => redisStore(each))
      const opened = fleets.map((each) => [
        limiterOf('tenants', policy(50), each),
        limiterOf('users', gcra({ limit: 40, window: '1h' }), each),
      ])
      const wholes = await Promise.all(
        Array.from({ length: 400 }, (_each, i) => {
          const [tenants, users] = opened[i % 4]!
          return consumeAll([
            { limiter: tenants!, key: 'acme' },
            { limiter: users!, key: `user ${i % 5}` },
          ])
        }),
      )
      expect(wholes.filter(({ allowed }) => allowed)).toHaveLength(50)
      const used = await Promise.all([0, 1, 2, 3, 4].map((i) => usedOf(limiters[1], `user ${i}`)))
      expect(used.reduce((sum, units) => sum + units, 0)).toBe(50)
    } finally {
      for (const other of others) other.disconnect()
    }
  })

  it('heal a state that is unreadable, and charge it with the others', async () => {
    await call()
    const [tenant] = await client.keys('*tenants*')
    for (const broken of ['short', `${'x'.repeat(500)}`]) {
      await client.set(tenant!, broken)
      const before = await usedOf(limiters[1], 'ada')
      expect((await call()).allowed).toBe(true)
      expect([await usedOf(limiters[0], 'acme'), await usedOf(limiters[1], 'ada')]).toEqual([1, before + 1])
    }
    await client.del(tenant!)
    await client.rpush(tenant!, 'a list')
    expect((await call()).allowed).toBe(true)
    expect(await usedOf(limiters[0], 'acme')).toBe(1)
  })

  it.each(['get', 'mget', 'getrange', 'time', 'set', 'setrange', 'pexpire', 'strlen', 'del'])(
    'are all charged, or none, where the server refuses %s',
    async (command) => {
      for (const keys of ['new', 'warm', 'old', 'broken tenants', 'broken users']) {
        await client.flushall()
        if (keys !== 'new') await call()
        if (keys === 'old')
          for (const key of await client.keys('*')) await client.setrange(key, 40, Buffer.alloc(8))
        const before = [await usedOf(limiters[0], 'acme'), await usedOf(limiters[1], 'ada')]
        for (const [i, { name }] of limiters.entries()) {
          if (keys !== `broken ${name}`) continue
          before[i] = 0
          await client.set((await client.keys(`*${name}*`))[0]!, 'short')
        }
        await client.call('ACL', 'SETUSER', 'default', `-${command}`)
        const outcome = await call().catch((error: unknown) => error)
        await client.call('ACL', 'SETUSER', 'default', '+@all')
        const charged = outcome instanceof Error ? 0 : 1
        const after = [await usedOf(limiters[0], 'acme'), await usedOf(limiters[1], 'ada')]
        expect([keys, ...after]).toEqual([keys, ...before.map((units) => units + charged)])
      }
    },
  )

  it('are all charged, or none, where the memory is full', async () => {
    for (const isWarm of [false, true]) {
      await client.flushall()
      if (isWarm) await call()
      await client.config('SET', 'maxmemory', '1')
      const outcome = await call().catch((error: unknown) => error)
      await client.config('SET', 'maxmemory', '0')
      expect(outcome).toMatchObject({ code: 'STORE_OOM', sent: false })
      const warm = isWarm ? 1 : 0
      expect([await usedOf(limiters[0], 'acme'), await usedOf(limiters[1], 'ada')]).toEqual([warm, warm])
    }
  })

  it('are decided in the order of their calls, whatever each costs', async () => {
    const two = limiterOf('two', policy(2), store)
    const part = (key: string, cost: number) =>
      consumeAll([
        { limiter: two, key, cost },
        { limiter: limiters[1], key, cost },
      ])
    // The first ones are sent, and the others wait to go in one batch.
    const others = Array.from({ length: 20 }, (_, i) => part(`other ${i}`, 1))
    const [first, second] = await Promise.all([part('key', 1), part('key', 2)])
    await Promise.all(others)
    expect([first.allowed, second.allowed]).toEqual([true, false])
  })

  it('may be 16 parts of ten policies each', async () => {
    const algorithms = [gcra, slidingLog, slidingWindow, tokenBucket, fixedWindow]
    const policies = [10, 20].flatMap((limit) =>
      algorithms.map((algorithm) => algorithm({ limit, window: '1h', name: `${algorithm.name}-${limit}` })),
    )
    const limiter = createLimiter({ name: 'ten', policies, store, ...settings })
    const parts = Array.from({ length: 16 }, (_each, i) => ({ limiter, key: `${i}` }))
    for (let i = 0; i < 11; i++) expect((await consumeAll(parts)).allowed).toBe(i < 10)
    for (const { key } of parts) expect((await limiter.peek(key)).remaining).toBe(0)
  })

  it('fail without their neighbours in the batch', async () => {
    const strict = limiterOf('costly', slidingLog({ limit: 100_000, window: '1h' }), store)
    const calls = Array.from({ length: 30 }, (_each, i) => {
      const cost = i === 20 ? 1001 : 1
      return consumeAll([
        { limiter: limiters[0], key: 'acme' },
        { limiter: strict, key: 'k', cost },
      ])
    })
    const outcomes = await Promise.allSettled(calls)
    expect(outcomes.filter(({ status }) => status === 'rejected')).toHaveLength(1)
    expect([await usedOf(limiters[0], 'acme'), await usedOf(strict, 'k')]).toEqual([29, 29])
  })
})

describe('several keys in the slots of a Cluster', () => {
  let cluster: Cluster
  let client: IoredisCluster
  beforeAll(async () => {
    cluster = await startCluster({ masters: 3 })
    client = new IoredisCluster([...cluster.masters], { retryDelayOnFailover: 0 })
  })
  afterAll(async () => {
    client.disconnect()
    await cluster.stop()
  })

  it.each(LISTS)('under %s are charged for the calls that pass, and for no other', async (_, policy) => {
    const store = redisStore(client)
    const name = policy(1).algorithm.name
    const tenants = limiterOf(`tenants-${name}`, policy(50), store)
    const users = limiterOf(`users-${name}`, policy(40), store)
    const wholes = await Promise.all(
      Array.from({ length: 400 }, (_each, i) =>
        consumeAll([
          { limiter: tenants, key: 'acme' },
          { limiter: users, key: `user ${i % 5}` },
        ]),
      ),
    )
    const passed = wholes.filter(({ allowed }) => allowed).length
    const used = await Promise.all([0, 1, 2, 3, 4].map((i) => usedOf(users, `user ${i}`)))
    expect(passed).toBeLessThanOrEqual(50)
    // What a debt has drained between a charge and its release is not given back: a part of a unit for each key.
    const most = name === 'gcra' ? 1 : 0
    const kept = [
      (await usedOf(tenants, 'acme')) - passed,
      used.reduce((sum, units) => sum + units, 0) - passed,
    ]
    expect(kept[0]).toBeGreaterThanOrEqual(0)
    expect(kept[0]).toBeLessThanOrEqual(most)
    expect(kept[1]).toBeGreaterThanOrEqual(0)
    expect(kept[1]).toBeLessThanOrEqual(5 * most)
  })
})
