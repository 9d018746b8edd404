import { createLimiter, gcra, type Policy, slidingLog, tokenBucket } from '../../src/index.js'
import { type LuaRedis, luaIsMissing, startLuaRedis } from './lua-redis.js'
import { luaStore } from './lua-store.js'

const missing = luaIsMissing()
const describeWithLua = missing ? describe.skip : describe
const HOUR = 3_600_000

describeWithLua(missing ?? 'the time to live of a key', () => {
  let redis: LuaRedis
  beforeAll(() => (redis = startLuaRedis()))
  afterAll(() => redis.close())

  let limiters = 0
  let now: number
  const at = (ms: number) => (now = ms * 1000)
  beforeEach(() => at(0))
  const open = (policy: Policy) =>
    createLimiter({
      name: `expiry ${++limiters}`,
      policies: [policy],
      store: luaStore(redis, { clock: () => now }),
    })
  const minute = (limit: number) => gcra({ limit, window: '1m', burst: 10 })

  const isThere = (name: string) =>
    redis.run(`return redis.call('GET', KEYS[1]) or ''`, now, Buffer.from(`${name}:k`), Buffer.of(0)).length >
    0

  it('ends a window and a second after everything is given back', async () => {
    const limiter = open(slidingLog({ limit: 2, window: '1m' }))
    await limiter.consume('k')
    at(120_999)
    expect(isThere(limiter.name)).toBe(true)
    at(121_000)
    expect(isThere(limiter.name)).toBe(false)
  })

  it('outlasts what is charged while time stands still because the clock was set back', async () => {
    const limiter = open(gcra({ limit: 10, window: '1m', burst: 20 }))
    at(50_000)
    await limiter.consume('k')
    at(0)
    await limiter.consume('k', { cost: 19 })
    at(50_000 + 119_000)
    await limiter.consume('k', { cost: 10 })
    at(50_000 + 180_000)
    expect(isThere(limiter.name)).toBe(true)
    at(50_000 + 181_000)
    expect(isThere(limiter.name)).toBe(false)
  })

  it('outlasts the wait of a slower tier for units that a faster one consumed', async () => {
    const [slow, fast] = [
      [gcra({ limit: 1, window: '1h', burst: 100 })],
      [gcra({ limit: 100, window: '1h' })],
    ]
    const limiter = open(slow[0]!)
    await limiter.consume('k', { policies: fast, cost: 100 })
    at(99 * HOUR)
    expect(await limiter.consume('k', { policies: slow, cost: 100 })).toMatchObject({
      allowed: false,
      retryAfterMs: HOUR,
    })
  })

  it('outlasts the wait of a tier that was used on another key only', async () => {
    const [slow, fast] = [
      [tokenBucket({ limit: 1, window: '1h', capacity: 100, refill: 'interval' })],
      [tokenBucket({ limit: 100, window: '1h', refill: 'interval' })],
    ] as const
    const limiter = open(fast[0])
    await limiter.consume('other', { policies: slow })
    await limiter.consume('k', { cost: 100 })
    at(99 * HOUR)
    expect((await limiter.peek('k', { policies: slow })).remaining).toBe(99)
  })

  it('grows once a slower tier was denied', async () => {
    const limiter = open(minute(10))
    await limiter.consume('k', { cost: 10 })
    at(1000)
    const slow = [gcra({ limit: 1, window: '1m', burst: 10 })]
    const { allowed, retryAfterMs } = await limiter.consume('k', { policies: slow, cost: 10 })
    expect(allowed).toBe(false)
    at(retryAfterMs)
    expect((await limiter.consume('k', { policies: slow, cost: 10 })).allowed).toBe(false)
    at(1000 + retryAfterMs)
    expect((await limiter.consume('k', { policies: slow, cost: 10 })).allowed).toBe(true)
  })
})
