import { createLimiter, gcra, type Policy, slidingLog, slidingWindow } from '../../src/index.js'
import { type LuaRedis, luaIsMissing, startLuaRedis } from './lua-redis.js'
import { luaStore } from './lua-store.js'

const missing = luaIsMissing()
const describeWithLua = missing ? describe.skip : describe
const MINUTE = 60_000
const START = 1_800_000_000_000
const penalty = { after: 2, block: '10m', forgetAfter: '1h' } as const

describeWithLua(missing ?? 'the count of a penalty in Redis', () => {
  let redis: LuaRedis
  beforeAll(() => (redis = startLuaRedis()))
  afterAll(() => redis.close())

  let limiters = 0
  let now: number
  const at = (ms: number) => (now = (START + ms) * 1000)
  beforeEach(() => at(0))
  const open = (policies: readonly Policy[], isPenalized = true, name = `penalty ${++limiters}`) =>
    createLimiter({
      name,
      policies,
      ...(isPenalized && { penalty }),
      store: luaStore(redis, { clock: () => now }),
    })
  const ask = (script: string, name: string) => redis.run(script, now, Buffer.from(`${name}:k`), Buffer.of(0))
  const stateOf = (name: string) => ask(`return redis.call('GET', KEYS[1]) or ''`, name)

  describe.each([
    ['gcra', [gcra({ limit: 3, window: '1m' })]],
    ['gcra with slots', [gcra({ limit: 3, window: '1m', slots: 4 })]],
    ['buckets', [slidingWindow({ limit: 3, window: '1m' })]],
    ['log', [slidingLog({ limit: 3, window: '1m' })]],
    ['two logs', [slidingLog({ limit: 3, window: '1m' }), slidingLog({ limit: 300, window: '1h' })]],
  ] as const)('%s', (_, policies) => {
    it('takes 16 bytes, 32 more with the first block, and none before the first refusal', async () => {
      const [plain, penalized] = [open(policies, false), open(policies)]
      for (const limiter of [plain, penalized]) await limiter.consume('k', { cost: 3 })
      const { length } = stateOf(plain.name)
      expect(stateOf(penalized.name)).toHaveLength(length)
      for (const bytes of [16, 48, 48]) {
        await penalized.consume('k')
        expect(stateOf(penalized.name)).toHaveLength(length + bytes)
      }
    })

    it('stays when the state is written, by limiters with a penalty and without', async () => {
      const limiter = open(policies)
      const plain = open(policies, false, limiter.name)
      await limiter.consume('k', { cost: 4 })
      await limiter.consume('k', { cost: 3 })
      expect((await limiter.consume('k')).reason).toBe('limit')
      for (let minute = 1; minute < 6; minute++) {
        at(2 * minute * MINUTE)
        expect((await (minute % 2 ? plain : limiter).consume('k', { cost: 2 })).remaining).toBe(1)
      }
      await limiter.charge('k', { cost: 1 })
      await plain.hold('k', '1s')
      at(10 * MINUTE + 1000)
      await plain.charge('k', { cost: 3 })
      expect(await limiter.consume('k')).toMatchObject({ reason: 'limit', retryAfterMs: 10 * MINUTE })
    })

    it('begins anew where no call can have written it', async () => {
      const limiter = open(policies)
      await limiter.consume('k', { cost: 3 })
      await limiter.consume('k')
      for (const number of ['0/0', '-1', '0.5', '1/0']) {
        ask(
          `redis.call('SETRANGE', KEYS[1], ${stateOf(limiter.name).length - 16}, struct.pack('<d', ${number})) return ''`,
          limiter.name,
        )
        expect(await limiter.consume('k')).toMatchObject({ reason: 'limit' })
        expect((await limiter.peek('k')).reason).toBe('limit')
      }
    })
  })

  it('lives until it is forgotten, and a second longer', async () => {
    const limiter = open([gcra({ limit: 1, window: '1m' })])
    await limiter.consume('k')
    await limiter.consume('k')
    at(61 * MINUTE)
    expect(stateOf(limiter.name)).not.toHaveLength(0)
    await limiter.consume('k')
    await limiter.consume('k')
    expect((await limiter.peek('k')).reason).toBe('limit')
    await limiter.consume('k')
    const end = 61 + 10 + 60
    at(end * MINUTE + 999)
    expect(stateOf(limiter.name)).not.toHaveLength(0)
    at((end + 1) * MINUTE + 1000)
    expect(stateOf(limiter.name)).toHaveLength(0)
  })
})
