import { everyPolicy } from '@sluice/testing/internal'
import { Redis } from 'ioredis'
import { FakeClock } from '@sluice/testing'
import { command, info, monitor, startRedis, until } from '@sluice/harness/redis'
import {
  calendarWindow,
  createLimiter,
  gcra,
  type Policy,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '../../../src/index.js'
import { redisStore } from '../../../src/stores/redis/index.js'
import { oneRedis, withoutRecords } from './one-redis.js'
import { expectWarnings } from '@sluice/harness/warnings'

jest.setTimeout(60_000)

const { server, client } = oneRedis()

const hour = { limit: 100, window: '1h' } as const
const open = (policies: readonly Policy[], options = {}) =>
  createLimiter({
    name: 'orders',
    policies,
    store: withoutRecords(redisStore(client)),
    deadline: '10s',
    ...options,
  })

/** The same policies under names of their own. */
const named = (policies: readonly Policy[]): Policy[] =>
  policies.map((policy, i) => Object.create(policy, { name: { value: `p${i}` } }))

const ALGORITHMS = everyPolicy({ limit: 100, window: 365 * 86_400_000 })

describe('one decision', () => {
  it('is one EVALSHA on one key, whatever the number of policies', async () => {
    const limiter = open([
      gcra(hour),
      slidingLog({ ...hour, name: 'log' }),
      slidingWindow({ ...hour, name: 'window' }),
    ])
    await limiter.consume('warm')
    const seen = await monitor(server)
    await limiter.consume('user:1')
    await seen.stop()
    const sent = seen.lines.filter((line) => !line.includes(' lua]') && /"evalsha"|"eval"/i.test(line))
    expect(sent).toHaveLength(1)
  })

  it('keeps one key for a limiter and caller, which reset deletes', async () => {
    await command(server, 'FLUSHALL')
    const limiter = open([gcra(hour), slidingLog({ ...hour, name: 'log' })])
    await limiter.consume('user:1')
    expect(await command(server, 'KEYS', '*')).toEqual(['sluice:4:orders:gcra/1h,sliding-log/1h:user:1'])
    await limiter.reset('user:1')
    expect(await command(server, 'DBSIZE')).toBe(0)
  })

  it('makes no key for a denied call or a cost of 0', async () => {
    await command(server, 'FLUSHALL')
    const limiter = open([gcra(hour)])
    await limiter.consume('a', { cost: 101 })
    await limiter.consume('b', { cost: 0 })
    await limiter.peek('c')
    expect(await command(server, 'DBSIZE')).toBe(0)
  })

  it('gives every key an expiry', async () => {
    await command(server, 'FLUSHALL')
    for (const [, policy] of ALGORITHMS) await open([policy]).consume('k')
    const keys = await command<string[]>(server, 'KEYS', '*')
    const ttls = await Promise.all(keys.map((key) => command<number>(server, 'PTTL', key)))
    expect(ttls.every((ttl) => ttl > 0)).toBe(true)
  })

  it('serves a limit that takes longer to give back than Redis can keep a key', async () => {
    const limiter = open([tokenBucket({ limit: 1, window: '365d', capacity: 2 ** 31, refill: 'interval' })])
    expect((await limiter.consume('ages', { cost: 2 ** 31 })).allowed).toBe(true)
    expect(await limiter.consume('ages')).toMatchObject({ allowed: false, remaining: 0 })
  })

  it.each(ALGORITHMS)('takes as many policies as a list may have: %s', async (_, policy) => {
    const same = named(Array.from({ length: 10 }, () => policy))
    expect((await open(same).consume('many')).allowed).toBe(true)
  })

  it('sends the script again after the server has lost it', async () => {
    const limiter = open([gcra(hour)])
    await limiter.consume('k')
    await command(server, 'SCRIPT', 'FLUSH')
    expect((await limiter.consume('k')).allowed).toBe(true)
  })
})

describe.each(ALGORITHMS)('%s', (name, policy) => {
  it('admits exactly its limit of 2,000 concurrent calls', async () => {
    const limiters = [1, 2].map(() => open([policy], { onStoreError: 'throw', deadline: '30s' }))
    const calls = Array.from({ length: 2000 }, (_, i) => limiters[i % 2]!.consume(`race ${name}`))
    const decisions = await Promise.all(calls)
    expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(100)
  })
})

describe('the longest list of policies', () => {
  const slots = (window: number) => gcra({ limit: 100, window, slots: 16 })
  const windows = Array.from({ length: 10 }, (_, i) => (i + 1) * 60_000)
  const EVERY = ['day', 'week', 'month', 'quarter', 'year'] as const

  it.each<readonly [string, readonly Policy[]]>([
    [
      'of every shape but two, and but calendars',
      ALGORITHMS.filter(([title]) => !/buckets 1|calendar/.test(title)).map(([, policy]) => policy),
    ],
    ['of calendars', windows.map((_, i) => calendarWindow({ limit: 100, every: EVERY[i % 5]! }))],
    ['of five calendars, in no function', EVERY.map((every) => calendarWindow({ limit: 100, every }))],
    ['of debts with slots', windows.map(slots)],
    ['of logs', windows.map((window) => slidingLog({ limit: 100, window }))],
    ['of sliding windows', windows.map((window) => slidingWindow({ limit: 100, window }))],
  ])('fits into a script, %s', async (_, policies) => {
    const limiter = open(named(policies))
    const decision = await limiter.consume('k', { cost: 3 })
    expect(decision).toMatchObject({ allowed: true, remaining: 97 })
    expect(await decision.settle(1)).toBe(-2)
    expect(await limiter.peek('k')).toMatchObject({ remaining: 99 })
  })
})

describe('a log', () => {
  it('admits exactly its limit of 2,000 calls in one tick, where a sorted set of instants would admit all', async () => {
    const policies = [slidingLog({ limit: 100, window: '1m' })]
    const store = withoutRecords(redisStore(client, { clock: () => 1_800_000_000_000_000 }))
    const limiter = createLimiter({ name: 'tick', policies, store, deadline: '30s', onStoreError: 'throw' })
    const calls = Array.from({ length: 2000 }, () => limiter.consume('k'))
    const decisions = await Promise.all(calls)
    expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(100)
  })

  it('takes at most 9 bytes an entry at a limit of 1,000', async () => {
    await command(server, 'FLUSHALL')
    const limiter = open([slidingLog({ limit: 1000, window: '1h' })])
    for (let i = 0; i < 1000; i++) await limiter.consume('k')
    const [key] = await command<string[]>(server, 'KEYS', '*')
    expect(await command<number>(server, 'MEMORY', 'USAGE', key!)).toBeLessThanOrEqual(9000)
  })

  it('refuses a cost above 1,000, which would block all other clients', async () => {
    const limiter = open([slidingLog({ limit: 100_000, window: '1h' })])
    await expect(limiter.consume('k', { cost: 1001 })).rejects.toMatchObject({ code: 'INVALID_COST' })
  })
})

describe('broken state', () => {
  const BROKEN = [
    '',
    'x',
    '1',
    '0'.repeat(72),
    'a'.repeat(72),
    '\xff'.repeat(72),
    'z'.repeat(500),
    '\0'.repeat(71),
  ]

  it.each(ALGORITHMS)('heals at the first touch: %s', async (_, policy) => {
    await command(server, 'FLUSHALL')
    const limiter = open([policy])
    const healed: string[] = []
    limiter.on('healed', ({ key }) => healed.push(key))
    await limiter.consume('k')
    const [key] = await command<string[]>(server, 'KEYS', '*')
    const makers = [
      ...BROKEN.slice(1).map((value) => ['SET', key!, value]),
      ['RPUSH', key!, 'a'],
      ['HSET', key!, 'a', '1'],
      ['ZADD', key!, '1', 'a'],
      ['SADD', key!, 'a'],
    ]
    for (const make of makers) {
      await command(server, 'DEL', key!)
      await command(server, ...(make as [string, ...string[]]))
      expect((await limiter.consume('k')).remaining).toBe(99)
    }
    expect(healed).toHaveLength(makers.length)
  })
})

describe('a store that cannot decide', () => {
  const oom = async () => {
    await command(server, 'CONFIG', 'SET', 'maxmemory-policy', 'noeviction')
    await command(server, 'CONFIG', 'SET', 'maxmemory', '1')
  }
  afterEach(() => command(server, 'CONFIG', 'SET', 'maxmemory', '0'))

  it('lets this process decide by default, and reports the reason', async () => {
    expectWarnings(['STORE_DEGRADED'])
    await oom()
    const limiter = open([gcra(hour)])
    expect(await limiter.consume('local')).toMatchObject({ allowed: true, remaining: 99, degraded: 'oom' })
    const calls = Array.from({ length: 200 }, () => limiter.consume('local'))
    expect((await Promise.all(calls)).filter(({ allowed }) => allowed)).toHaveLength(99)
  })

  it('throws under onStoreError throw, with the reason as a code and the cause', async () => {
    expectWarnings(['STORE_DEGRADED'])
    await oom()
    await expect(open([gcra(hour)], { onStoreError: 'throw' }).consume('k')).rejects.toMatchObject({
      code: 'STORE_OOM',
      cause: expect.any(Error),
    })
  })

  it('allows or denies under onStoreError allow or deny, and reports the reason', async () => {
    expectWarnings(['STORE_DEGRADED'])
    await oom()
    const [allow, deny] = ['allow', 'deny'].map((onStoreError) => open([gcra(hour)], { onStoreError }))
    expect(await allow!.consume('k')).toMatchObject({ allowed: true, degraded: 'oom', reason: undefined })
    expect(await deny!.consume('k')).toMatchObject({ allowed: false, degraded: 'oom', retryAfterMs: 1000 })
  })

  it('keeps the deadline while Redis does not answer', async () => {
    expectWarnings(['STORE_DEGRADED'])
    const limiter = open([gcra(hour)], { deadline: '50ms', onStoreError: 'allow' })
    await limiter.consume('k')
    server.pause()
    const decisions = await Promise.all(Array.from({ length: 20 }, () => limiter.consume('k')))
    server.resume()
    expect(new Set(decisions.map(({ degraded }) => degraded))).toEqual(new Set(['timeout']))
  })
})

describe('a client that replays', () => {
  it('is warned about once, whatever the number of its limiters and stores', async () => {
    const codes: string[] = []
    for (const careless of [1, 2].map(() => new Redis({ host: server.host, port: server.port }))) {
      const stores = [redisStore(careless), redisStore(careless)]
      for (const [i, store] of [...stores, ...stores].entries()) {
        const limiter = createLimiter({ name: `orders ${i}`, policies: [gcra(hour)], store })
        limiter.on('warning', ({ code }) => codes.push(code))
        await limiter.consume('k')
      }
      careless.disconnect()
    }
    expect(codes).toEqual(['CLIENT_REPLAYS', 'CLIENT_REPLAYS'])
  })
})

describe('a store that is closed', () => {
  it.each(['local', 'throw'] as const)('rejects calls that wait for their turn, under %s', async (mode) => {
    const store = withoutRecords(redisStore(client))
    const limiter = open([gcra({ limit: 1, window: '1d' })], { name: mode, store, onStoreError: mode })
    await limiter.acquire('k')
    const refusal = limiter.acquire('k', { maxWait: '1d' }).catch((error: unknown) => error)
    await until('its place to be booked', async () => (await limiter.peek('k')).retryAfterMs > 86_400_000)
    await store.close()
    expect(await refusal).toMatchObject({ code: 'CLOSED' })
    expect(limiter.waiting).toBe(0)
  })
})

describe('a clock of Redis that is set back behind the last write on a blocked key', () => {
  const minute = [gcra({ limit: 1, window: '1m' })]
  it.each([
    [59_000, 'blocked'],
    [61_000, undefined],
  ])('by %d ms, where the window is a minute: then a call is %s', async (ms, reason) => {
    const clock = new FakeClock()
    const store = withoutRecords(redisStore(client, { clock: clock.now, denialCache: false }))
    const limiter = open(minute, { name: `back ${ms}`, store, penalty: { after: 2, block: '10m' } })
    for (let i = 0; i < 3; i++) await limiter.consume('k')
    clock.pass(-ms)
    expect((await limiter.consume('k')).reason).toBe(reason)
    expect((await limiter.consume('k')).reason).toBe(reason ?? 'limit') // the count began anew
  })
})

describe('a Redis that evicts', () => {
  const warnings = async (args: readonly string[], user?: readonly string[]) => {
    const other = await startRedis({ args })
    if (user) await command(other, 'ACL', 'SETUSER', ...(user as [string]))
    const store = redisStore({ host: other.host, port: other.port })
    const limiter = createLimiter({ name: 'orders', policies: [gcra(hour)], store, deadline: '10s' })
    const codes: string[] = []
    limiter.on('warning', ({ code }) => codes.push(code))
    for (let i = 0; i < 3; i++) expect((await limiter.consume('k')).degraded).toBeUndefined()
    await limiter.close()
    await store.close()
    await other.stop()
    return codes
  }

  it('is warned about once', async () => {
    const args = ['--maxmemory', '100mb', '--maxmemory-policy', 'allkeys-lru']
    expect(await warnings(args)).toEqual(['REDIS_EVICTS'])
  })

  it('causes no warning if it evicts nothing', async () => {
    expect(await warnings(['--maxmemory-policy', 'allkeys-lru'])).toEqual([])
    expect(await warnings(['--maxmemory', '100mb', '--maxmemory-policy', 'noeviction'])).toEqual([])
  })

  it('causes no warning for a user that may not read INFO, and calls are still decided', async () => {
    const args = ['--maxmemory', '100mb', '--maxmemory-policy', 'allkeys-lru']
    expect(await warnings(args, ['default', '-info'])).toEqual([])
  })
})

describe('a denied call', () => {
  it('costs Redis nothing for a while, in any process that has cached the denial', async () => {
    const caching = () =>
      open([gcra({ limit: 1, window: '1h' })], {
        store: withoutRecords(redisStore(client, { denialCache: { maxAge: '1m' } })),
      })
    const [first, second] = [caching(), caching()]
    await first.consume('denied')
    expect((await first.consume('denied')).allowed).toBe(false)
    await second.consume('another')
    const calls = async () =>
      Number(/calls=(\d+)/.exec((await info(server, 'commandstats'))['cmdstat_evalsha']!)![1])
    const before = await calls()
    for (let i = 0; i < 100; i++) expect(first.decide('denied')).toMatchObject({ allowed: false })
    expect(await calls()).toBe(before)
    expect((await second.consume('denied')).allowed).toBe(false)
    expect(await calls()).toBe(before + 1)
  })

  it('asks Redis each time with denialCache: false', async () => {
    const store = withoutRecords(redisStore(client, { denialCache: false }))
    const limiter = createLimiter({
      name: 'asks',
      policies: [gcra({ limit: 1, window: '1h' })],
      store,
      deadline: '10s',
    })
    await limiter.consume('k')
    await limiter.consume('k')
    expect(limiter.decide('k')).toBeInstanceOf(Promise)
  })

  it.each([{ denialCache: true }, { denialCache: { maxAge: 0 } }, { denialCache: { maxKeys: 0 } }])(
    'refuses %p',
    (options) => {
      expect(() => redisStore(client, options as object)).toThrow(
        expect.objectContaining({ code: expect.stringMatching(/INVALID_(OPTION|DURATION)/) }),
      )
    },
  )
})

it('reads no clock of the caller', async () => {
  const limiter = open([slidingLog({ limit: 1, window: '1h' })])
  await limiter.consume('clock')
  const wall = jest.spyOn(Date, 'now').mockReturnValue(0)
  expect((await limiter.consume('clock')).allowed).toBe(false)
  wall.mockRestore()
  expect((await info(server, 'keyspace'))['db0']).toBeDefined()
})
