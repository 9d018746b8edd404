import { FakeClock, installFakeClock } from '@sluice/testing'
import {
  consumeAll,
  type Decision,
  createLimiter,
  fixedWindow,
  gcra,
  type LimiterOptions,
  memoryStore,
  peekAll,
  type Policy,
  slidingLog,
  type Store,
  tokenBucket,
} from '../../src/index.js'
import { guard } from '../../src/leases/leased-store.js'

const WHO = { reason: 'a campaign', by: 'ops' }
const HOUR = [fixedWindow({ limit: 2, window: '1h' })]

let clock: FakeClock
let store: Store
beforeEach(() => {
  clock = new FakeClock()
  store = memoryStore({ clock: clock.now })
})

const open = (options: Partial<LimiterOptions> = {}) =>
  createLimiter({ name: 'api', policies: HOUR, store, ...options })

describe('an override', () => {
  it('lets a denied key pass at the next call, measured against the new limit', async () => {
    const limiter = open()
    await limiter.consume('a', { cost: 2 })
    expect(await limiter.consume('a')).toMatchObject({ allowed: false })
    await limiter.override('a', { limit: 5, until: '1h', ...WHO })
    const decision = await limiter.consume('a')
    expect(decision).toMatchObject({ allowed: true, limit: 5, remaining: 2 })
    expect(decision.policies).toMatchObject([{ rule: 'override', limit: 5, used: 3 }])
    expect(await limiter.consume('b', { cost: 3 })).toMatchObject({ allowed: false, limit: 2 })
  })

  it('is in force for every limiter of its name and store, and for no other', async () => {
    const [limiter, twin, other] = [open(), open(), open({ name: 'other' })]
    await limiter.override('a', { limit: 5, until: '1h', ...WHO })
    expect((await twin.peek('a')).limit).toBe(5)
    expect((await other.peek('a')).limit).toBe(2)
    expect((await createLimiter({ name: 'api', policies: HOUR }).peek('a')).limit).toBe(2)
  })

  it.each([
    ['a duration', () => '1m'],
    ['a Date', () => new Date(clock.now() / 1000 + 60_000)],
  ])('ends at its end, to the microsecond: %s', async (_, until) => {
    const limiter = open()
    await limiter.override('a', { limit: 5, until: until(), ...WHO })
    clock.pass(59_999.999)
    expect((await limiter.peek('a')).limit).toBe(5)
    clock.pass(0.001)
    expect((await limiter.peek('a')).limit).toBe(2)
    expect(await limiter.overrides()).toEqual([])
  })

  it('goes on where the clock of the store was set back while the process took it for ended', async () => {
    const time = installFakeClock()
    let ahead = 0
    const [keyspace, now] = [store.keyspace.bind(store), () => clock.now() + ahead]
    const elsewhere: Store = { guard, keyspace, records: () => store.records!(), now, close() {} }
    const limiter = open({ store: elsewhere })
    const changes: string[] = []
    limiter.on('override', ({ change }) => changes.push(change))
    await limiter.override('a', { limit: 5, until: '2s', ...WHO })
    ahead = 3_000_000
    await time.pass(1000)
    expect((await limiter.peek('a')).limit).toBe(5)
    clock.pass(2000)
    await time.pass(1000)
    expect((await limiter.peek('a')).limit).toBe(2)
    expect(changes).toEqual(['set', 'ended', 'set', 'ended'])
    await limiter.close()
    time.restore()
  })

  it('is replaced by the next one, and ended by removeOverride, whatever the key is', async () => {
    const limiter = open()
    for (const key of [
      'a',
      'k'.repeat(8192),
      'sha256:x',
      '\ud800',
      '\udc00',
      '',
      'a\nb\0c\u2028\u2029',
      '{a}:%',
    ]) {
      await limiter.override(key, { limit: 5, until: '1m', ...WHO })
      await limiter.override(key, { factor: 10, until: '1m', ...WHO })
      expect((await limiter.peek(key)).limit).toBe(20)
      expect((await limiter.overrides()).map((each) => each.key)).toEqual([key])
      await limiter.removeOverride(key)
      expect((await limiter.peek(key)).limit).toBe(2)
    }
  })

  it.each([
    ['', 'b', 'ab', '1:log-in'],
    ['1:log-in', '2:log-in', '12:log-in', ':log-in', '2:in', 'in', 'n'],
    ['user:1@example.com', 'user:2@example.com', 'user:2@example.org', 'k'.repeat(500)],
  ])('concerns its key and no other, whatever the keys are and end with: %s', async (...keys) => {
    const limiter = open()
    const inForce = () => keys.filter((key) => (limiter.decide(key) as Decision).limit === 5)
    for (const [i, key] of keys.entries()) {
      await limiter.override(key, { limit: 5, until: '1m', ...WHO })
      expect(inForce()).toEqual(keys.slice(0, i + 1))
    }
  })

  it('wins over the policies of a call, and a block over it', async () => {
    const plan = [fixedWindow({ limit: 7, window: '1h' })]
    const limiter = open()
    const ruleOf = async (policies?: typeof plan) => {
      const { limit, policies: states } = await limiter.peek('a', policies && { policies })
      return [limit, states[0]!.rule]
    }
    expect([await ruleOf(), await ruleOf(plan)]).toEqual([
      [2, 'default'],
      [7, 'plan'],
    ])
    await limiter.override('a', { limit: 5, until: '1h', ...WHO })
    expect([await ruleOf(), await ruleOf(plan)]).toEqual([
      [5, 'override'],
      [5, 'override'],
    ])
    await limiter.block('a', '1m')
    expect([await ruleOf(), await ruleOf(plan)]).toEqual([
      [5, 'block'],
      [5, 'block'],
    ])
    clock.pass(60_000)
    expect(await ruleOf()).toEqual([5, 'override'])
  })

  it('is not left by what is taken back or settled: all of it counts in one state', async () => {
    const limiter = open()
    const before = await limiter.consume('a')
    await limiter.override('a', { limit: 5, until: '1h', ...WHO })
    const during = await limiter.consume('a', { cost: 3 })
    await before.settle(0)
    expect((await limiter.peek('a')).remaining).toBe(2)
    await during.settle(1)
    await limiter.charge('a', { cost: 9 })
    await limiter.refund('a', { cost: 8 })
    expect((await limiter.peek('a')).policies[0]!.used).toBe(2)
    await limiter.removeOverride('a')
    expect((await limiter.peek('a')).policies[0]!.used).toBe(2)
  })

  it('follows booked turns, which keep their instants', async () => {
    const limiter = open({ policies: [gcra({ limit: 1, window: '10s' })] })
    await limiter.acquire('a')
    const booked = limiter.acquire('a')
    await limiter.override('a', { limit: 100, until: '1h', ...WHO })
    expect(await limiter.consume('a')).toMatchObject({ allowed: false, retryAfterMs: 10_000 })
    await limiter.close()
    await expect(booked).rejects.toMatchObject({ code: 'CLOSED' })
  })
})

describe('the numbers of an override', () => {
  const numbersOf = async (limiter: ReturnType<typeof open>, policies?: readonly Policy[]) => {
    const { policies: states } = await limiter.peek('a', policies && { policies })
    return states.map(({ limit }) => limit)
  }

  it.each([
    ['a capacity that follows the limit', tokenBucket({ limit: 10, window: '1s' }), { limit: 30 }, 30],
    ['a capacity that was given', tokenBucket({ limit: 10, window: '1s', capacity: 15 }), { limit: 30 }, 15],
    ['a burst that follows', gcra({ limit: 10, window: '1s' }), { limit: 3 }, 3],
    ['a burst that was given', gcra({ limit: 10, window: '1s', burst: 4 }), { limit: 3 }, 4],
    ['a factor, of both', gcra({ limit: 10, window: '1s', burst: 4 }), { factor: 2.9 }, 11],
    ['a factor, at least 1', gcra({ limit: 10, window: '1s', burst: 4 }), { factor: 0.001 }, 1],
    ['a limit of 0', gcra({ limit: 10, window: '1s', burst: 4 }), { limit: 0 }, 0],
    [
      'policies with a limit of 0',
      gcra({ limit: 10, window: '1s', burst: 4 }),
      { policies: [gcra({ limit: 0, window: '1s', burst: 4 })] },
      0,
    ],
    [
      'a list',
      gcra({ limit: 10, window: '1s' }),
      { policies: [gcra({ limit: 4, window: '1s', burst: 9 })] },
      9,
    ],
  ])('have %s', async (_, policy, given, capacity) => {
    const limiter = open({ policies: [policy] })
    await limiter.override('a', { ...given, until: '1h', ...WHO })
    expect(await numbersOf(limiter)).toEqual([capacity])
  })

  it('have one for each policy that is named, and a name of a kind that two policies share', async () => {
    const policies = [gcra({ limit: 10, window: '1s' }), gcra({ limit: 10, window: '1s' })]
    const limiter = open({ policies })
    await limiter.override('a', { limit: { '10-per-1s-gcra-2': 30 }, until: '1h', ...WHO })
    expect(await numbersOf(limiter)).toEqual([10, 30])
    expect((await limiter.overrides())[0]!.limits).toEqual({ '10-per-1s-gcra': 10, '10-per-1s-gcra-2': 30 })
  })

  it('act on a plan of other shapes as a factor and an exemption alone, which the list says', async () => {
    const plan = [slidingLog({ limit: 7, window: '1d' })]
    const limiter = open()
    await limiter.override('a', { limit: 5, until: '1h', ...WHO })
    expect([await numbersOf(limiter), await numbersOf(limiter, plan)]).toEqual([[5], [7]])
    expect(await limiter.overrides()).toMatchObject([
      { actsUnder: 'lists of these shapes', limits: { '2-per-1h': 5 } },
    ])
    await limiter.override('a', { factor: 10, until: '1h', ...WHO })
    expect([await numbersOf(limiter), await numbersOf(limiter, plan)]).toEqual([[20], [70]])
    expect(await limiter.overrides()).toMatchObject([{ actsUnder: 'every list', factor: 10 }])
  })

  it('have applied where they have decided a call, and not under a list on which they do not act', async () => {
    const limiter = open()
    const plan = [slidingLog({ limit: 90_000, window: '1d' })]
    const hasApplied = async () => (await limiter.overrides())[0]!.lastAppliedAt !== undefined
    for (const numbers of [{ limit: 5 }, { factor: 1e6 }]) {
      await limiter.override('a', { ...numbers, until: '1h', ...WHO })
      expect(await limiter.consume('a', { policies: plan })).toMatchObject({ limit: 90_000 })
      await limiter.refund('a')
      expect(await hasApplied()).toBe(false)
      await limiter.consume('a')
      expect(await hasApplied()).toBe(true)
    }
  })

  it('act on none once the own list has other shapes', async () => {
    let policies: readonly Policy[] = HOUR
    const limiter = open({ policies: () => policies })
    await limiter.override('a', { limit: 5, until: '1h', ...WHO })
    expect((await limiter.peek('a')).limit).toBe(5)
    policies = [slidingLog({ limit: 7, window: '1d' })]
    expect((await limiter.peek('a')).limit).toBe(7)
    expect(await limiter.overrides()).toMatchObject([{ actsUnder: 'none' }])
  })

  it('leave a plan as it is with which a factor could not be counted', async () => {
    const limiter = open()
    await limiter.override('a', { factor: 1e6, until: '1h', ...WHO })
    const plan = [slidingLog({ limit: 90_000, window: '1d' })]
    expect(await numbersOf(limiter, plan)).toEqual([90_000])
  })

  it.each([
    ['INVALID_OVERRIDE', /takes one of/, {}],
    ['INVALID_OVERRIDE', /takes one of/, { limit: 1, factor: 2 }],
    [
      'INVALID_OVERRIDE',
      /algorithms and windows of the limiter, in order: fixed-window/,
      { policies: [gcra({ limit: 1, window: '1h' })] },
    ],
    ['INVALID_OVERRIDE', /no policy 'other'/, { limit: { other: 3 } }],
    ['INVALID_OVERRIDE', /a number/, { limit: {} }],
    ['INVALID_OVERRIDE', /a number/, { limit: null as never }],
    ['INVALID_OVERRIDE', /a number/, { limit: { '2-per-1h': undefined as never } }],
    ['INVALID_OVERRIDE', /a number/, { limit: { '2-per-1h': null as never } }],
    ['INVALID_OVERRIDE', /a number/, { limit: { '2-per-1h': [7, 9] as never } }],
    ['INVALID_OVERRIDE', /a number/, { limit: { '2-per-1h': '7' as never } }],
    ['INVALID_LIMIT', /limit must be/, { limit: 1.5 }],
    ['INVALID_LIMIT', /limit must be/, { limit: -1 }],
    ['INVALID_OPTION', /factor must be a number above 0/, { factor: 0 }],
    ['INVALID_OPTION', /exempt must be/, { exempt: false as never }],
    ['INVALID_DURATION', /until must be/, { limit: 1, until: new Date(0) }],
    ['INVALID_DURATION', /until must be/, { limit: 1, until: '0s' }],
    ['INVALID_DURATION', /until must be/, { limit: 1, until: '366d' }],
    ['INVALID_DURATION', /until must be/, { limit: 1, until: new Date(Date.UTC(2027, 0, 2)) }],
    ['INVALID_DURATION', /an invalid Date/, { limit: 1, until: new Date(NaN) }],
    ['INVALID_DURATION', /until must be/, { limit: 1, until: undefined as never }],
    ['INVALID_OPTION', /reason must be/, { limit: 1, reason: undefined as never }],
    ['INVALID_OPTION', /by must be/, { limit: 1, by: undefined as never }],
    ['INVALID_OPTION', /reason must be/, { limit: 1, reason: '' }],
    ['INVALID_OPTION', /by must be/, { limit: 1, by: 'x'.repeat(201) }],
    ['INVALID_OPTION', /no option 'max'/, { max: 1 }],
  ])('are refused as %s: %s', async (code, message, given) => {
    const limiter = open()
    const refused = limiter.override('a', { until: '1h', ...WHO, ...given })
    await expect(refused).rejects.toMatchObject({ code, message: expect.stringMatching(message) as string })
    expect(await limiter.overrides()).toEqual([])
  })

  it('need names where there are several policies', async () => {
    const limiter = open({ policies: [gcra({ limit: 1, window: '1s' }), gcra({ limit: 9, window: '1m' })] })
    const refused = limiter.override('a', { limit: 1, until: '1h', ...WHO })
    await expect(refused).rejects.toThrow("limit must be { '1-per-1s': limit, '9-per-1m': limit }")
  })

  it('are those of the policies that are named, whatever the others are named', async () => {
    const limiter = open({
      policies: [gcra({ limit: 10, window: '1s', name: 'constructor' }), gcra({ limit: 9, window: '1m' })],
    })
    await limiter.override('a', { limit: { '9-per-1m': 20 }, until: '1h', ...WHO })
    expect(await numbersOf(limiter)).toEqual([10, 20])
  })

  it('need force where they are below what is in use, and say what they would do', async () => {
    const limiter = open({ policies: [fixedWindow({ limit: 100, window: '1h' })] })
    await limiter.consume('a', { cost: 80 })
    const lower = { limit: 10, until: '1h', ...WHO } as const
    await expect(limiter.override('a', lower)).rejects.toMatchObject({
      code: 'OVERRIDE_LOWERS',
      message:
        "'a' has used 80 of '100-per-1h', and would be denied until no more than 10 count: pass force: true if that is meant",
    })
    await limiter.override('a', { ...lower, limit: 80 })
    await limiter.override('a', { ...lower, force: true })
    expect(await limiter.consume('a')).toMatchObject({ allowed: false, limit: 10 })
    await expect(limiter.override('a', { ...lower, limit: 20 })).rejects.toThrow(/no more than 20 count/)
  })

  it('need force where calls under a plan have more in use', async () => {
    const limiter = open()
    const numbers = { until: '1h', ...WHO } as const
    await limiter.consume('a', { cost: 500, policies: [fixedWindow({ limit: 1000, window: '1h' })] })
    await expect(limiter.override('a', { ...numbers, limit: 200 })).rejects.toThrow(/used 500 of '2-per-1h'/)
    await limiter.override('a', { ...numbers, factor: 1.5 }) // lowers no list
    const plan = [slidingLog({ limit: 1000, window: '1d' })]
    await limiter.consume('b', { cost: 500, policies: plan })
    await expect(limiter.override('b', { ...numbers, factor: 0.4 })).rejects.toThrow(
      /used 500 of '1000-per-1d'/,
    )
    await limiter.override('b', { ...numbers, factor: 0.5 })
    await limiter.override('b', { ...numbers, limit: 1 }) // which does not act under the plan
    expect((await limiter.consume('b', { policies: plan })).allowed).toBe(true)
  })

  it('take the list of an override for no plan under which other keys are called', async () => {
    const limiter = open({ policies: [fixedWindow({ limit: 100, window: '1h' })] })
    const numbers = { until: '1h', ...WHO } as const
    await limiter.override('b', { ...numbers, policies: [fixedWindow({ limit: 3, window: '1h' })] })
    await limiter.consume('a', { cost: 5 })
    expect(await limiter.override('a', { ...numbers, factor: 0.5 })).toMatchObject({ factor: 0.5 })
  })

  it.each([
    ['declared', (small: Policy) => ({ tiers: [[small]] })],
    ['brought by a call', () => ({})],
  ])('need force where a list of the same shapes would be lowered, which was %s', async (_, more) => {
    const small = fixedWindow({ limit: 10, window: '1h' })
    const limiter = open({ policies: [fixedWindow({ limit: 100, window: '1h' })], ...more(small) })
    await limiter.consume('a', { cost: 8, policies: [small] })
    const numbers = { factor: 0.5, until: '1h', ...WHO } as const
    await expect(limiter.override('a', numbers)).rejects.toThrow(
      /used 8 of '10-per-1h'.*no more than 5 count/,
    )
    // Nor is what an override has made of a list one that it acts on.
    await limiter.override('a', { ...numbers, force: true })
    await limiter.override('a', { ...numbers, factor: 0.8 })
  })

  it('need no force for a policy that they leave as it is', async () => {
    const limiter = open({
      policies: [fixedWindow({ limit: 10, window: '1h' }), fixedWindow({ limit: 100, window: '1d' })],
    })
    await limiter.charge('a', { cost: 20 })
    await limiter.override('a', { limit: { '100-per-1d': 30 }, until: '1h', ...WHO })
    const lower = limiter.override('a', { limit: { '10-per-1h': 15 }, until: '1h', ...WHO })
    await expect(lower).rejects.toMatchObject({ code: 'OVERRIDE_LOWERS' })
  })

  it('are at most 10,000 of a limiter, of which those that have ended give way', async () => {
    const limiter = open()
    for (let i = 0; i < 10_000; i++) {
      await limiter.override(`k${i}`, { factor: 2, until: i === 9999 ? '1m' : '1h', ...WHO })
      await limiter.consume(`k${i}`) // which the next reads report before the end of the last
    }
    const next = () => limiter.override('next', { factor: 2, until: '1h', ...WHO })
    await expect(next()).rejects.toMatchObject({
      code: 'TOO_MANY_OVERRIDES',
      message: expect.stringMatching(/a plan/) as string,
    })
    await limiter.override('k1', { factor: 3, until: '1h', ...WHO })
    await open({ name: 'other' }).override('next', { factor: 2, until: '1h', ...WHO })
    clock.pass(60_000)
    await next()
    expect((await limiter.peek('next')).limit).toBe(4)
  })
})

describe('an exempt key', () => {
  const exempt = { exempt: true, until: '1h', ...WHO } as const

  it('passes and is not counted', async () => {
    const limiter = open()
    await limiter.override('a', exempt)
    const events: unknown[] = []
    limiter.on('decision', ({ decidedBy, charged }) => void events.push({ decidedBy, charged }))
    for (const decision of [
      await limiter.consume('a', { cost: 3 }),
      await limiter.acquire('a', { cost: 3 }),
      limiter.decide('a'),
      await limiter.peek('a'),
    ]) {
      expect(decision).toMatchObject({
        allowed: true,
        exempt: true,
        limit: Infinity,
        remaining: Infinity,
        policies: [],
        policy: '',
        charged: false,
        retryAfterMs: 0,
        resetAfterMs: 0,
      })
    }
    expect(await (await limiter.consume('a')).settle(5)).toBe(0)
    expect(events).toEqual(Array(4).fill({ decidedBy: 'none', charged: false }))
    await limiter.removeOverride('a')
    const { remaining, exempt: isExempt } = await limiter.peek('a')
    expect([remaining, isExempt]).toEqual([2, undefined])
  })

  it('is charged nothing by charge, and what it is given back counts', async () => {
    const limiter = open()
    const before = await limiter.consume('a', { cost: 2 })
    await limiter.override('a', exempt)
    await limiter.charge('a', { cost: 2 })
    await before.settle(1)
    await limiter.removeOverride('a')
    expect((await limiter.peek('a')).remaining).toBe(1)
  })

  it('is left out of a whole, which its limit does not deny', async () => {
    const [limiter, other] = [open(), open({ name: 'other' })]
    await limiter.override('a', exempt)
    const parts = [limiter, other].map((each) => ({ limiter: each, key: 'a', cost: 2 }))
    const whole = await consumeAll(parts)
    expect(whole.decisions.map(({ allowed, remaining, charged }) => [allowed, remaining, charged])).toEqual([
      [true, Infinity, false],
      [true, 0, true],
    ])
    const denied = await consumeAll(parts)
    expect([denied.allowed, denied.denied?.limiter]).toEqual([false, 'other'])
    expect((await peekAll(parts)).decisions[0]!.exempt).toBe(true)
    await other.override('a', exempt)
    expect((await consumeAll(parts)).allowed).toBe(true)
    expect((await consumeAll([parts[0]!, parts[0]!])).allowed).toBe(true)
  })

  it('is denied by a block with a record, until that ends, and not by the block of a penalty', async () => {
    const limiter = open({ penalty: { block: '10m' } })
    await limiter.consume('a', { cost: 2 })
    await limiter.consume('a')
    expect((await limiter.peek('a')).reason).toBe('blocked')
    expect((await limiter.override('a', exempt)).blocked).toBe(
      'by a penalty or an older process: unblock ends it',
    )
    expect((await limiter.consume('a')).allowed).toBe(true)
    await limiter.block('a', '1m', { reason: 'abuse', by: 'night shift' })
    expect(await limiter.consume('a')).toMatchObject({ allowed: false, reason: 'blocked' })
    expect((await limiter.override('a', exempt)).blocked).toBe('by night shift: unblock ends it')
    await limiter.unblock('a')
    expect((await limiter.consume('a')).exempt).toBe(true)
    await limiter.block('a', '1m')
    clock.pass(60_000)
    expect((await limiter.consume('a')).exempt).toBe(true)
    await limiter.block('a', '1m')
    await limiter.reset('a')
    expect((await limiter.consume('a')).exempt).toBe(true)
  })
})

it('an override to a limit of 0 says where a block stands, and so does the next', async () => {
  const limiter = open({ penalty: { block: '10m' } })
  await limiter.consume('a', { cost: 2 })
  await limiter.consume('a')
  const suspend = async () =>
    (await limiter.override('a', { limit: 0, until: '1h', force: true, ...WHO })).blocked
  expect([await suspend(), await suspend()]).toEqual(
    Array(2).fill('by a penalty or an older process: unblock ends it'),
  )
  await limiter.block('a', '1h', WHO)
  expect(await suspend()).toBe('by ops: unblock ends it')
})

it('an override forgets the refusals that were counted for a penalty', async () => {
  const limiter = open({ penalty: { after: 2, block: '10m' } })
  await limiter.consume('a', { cost: 2 })
  await limiter.consume('a')
  await limiter.override('a', { limit: 2, until: '1h', ...WHO })
  await limiter.consume('a')
  expect((await limiter.peek('a')).reason).toBe('limit')
  await limiter.consume('a')
  expect((await limiter.peek('a')).reason).toBe('blocked')
})

it('the list has who, why, until when, and when it last applied', async () => {
  const limiter = open()
  const start = new Date(clock.now() / 1000)
  await limiter.override('a', { limit: 5, until: '1h', ...WHO })
  clock.pass(1000)
  await limiter.block('b', '1h', { reason: 'abuse', by: 'night shift' })
  await limiter.hold('c', '1h', { by: 'them' })
  await limiter.hold('d', '1h')
  await limiter.consume('a')
  const after = (ms: number) => new Date(Number(start) + ms)
  const whole = { limiter: 'api' }
  expect((await limiter.overrides()).toSorted((one, other) => (one.key < other.key ? -1 : 1))).toStrictEqual([
    {
      ...whole,
      kind: 'override',
      key: 'a',
      ...WHO,
      madeAt: start,
      until: after(3_600_000),
      lastAppliedAt: after(1000),
      limits: { '2-per-1h': 5 },
      actsUnder: 'lists of these shapes',
      leaseMs: 0,
    },
    {
      ...whole,
      kind: 'block',
      key: 'b',
      reason: 'abuse',
      by: 'night shift',
      madeAt: after(1000),
      until: after(3_601_000),
    },
    {
      ...whole,
      kind: 'hold',
      key: 'c',
      reason: undefined,
      by: 'them',
      madeAt: expect.any(Date) as Date,
      until: after(3_601_000),
    },
  ])
})

it('the record of a hold ends with the hold: at a reset, and not before where a shorter one follows', async () => {
  const limiter = open()
  const ends = async () => (await limiter.overrides()).map(({ by, until }) => [by, Number(until)])
  await limiter.hold('a', '1h', WHO)
  const end = clock.now() / 1000 + 3_600_000
  await limiter.hold('a', '1s', { by: 'them' })
  expect(await ends()).toEqual([['ops', end]])
  await limiter.hold('a', '2h', { by: 'them' })
  expect(await ends()).toEqual([['them', end + 3_600_000]])
  await limiter.consume('a', { cost: 2 })
  await limiter.block('a', '1h', WHO)
  await limiter.reset('a')
  expect(await ends()).toEqual([])
  const { allowed, records } = await limiter.explain('a')
  expect([allowed, records]).toEqual([true, []])
})

describe('acts on one key that are made at once', () => {
  it.each(['hold first', 'reset first'])('a hold with words and a reset both end: %s', async (order) => {
    const limiter = open()
    const acts = [() => limiter.hold('a', '5s', WHO), () => limiter.reset('a')]
    await Promise.all((order === 'hold first' ? acts : acts.toReversed()).map((act) => act()))
    const isHeld = order === 'reset first'
    expect((await limiter.peek('a')).reason).toBe(isHeld ? 'held' : undefined)
    expect(await limiter.overrides()).toHaveLength(isHeld ? 1 : 0)
  })

  it.each(['reset', 'unblock'] as const)('a block that follows a %s stands', async (earlier) => {
    for (const isBlocked of [false, true]) {
      const limiter = open({ name: `api ${earlier} ${isBlocked}` })
      if (isBlocked) await limiter.block('a', '1m', WHO)
      const [ending, blocking] = [limiter[earlier]('a'), limiter.block('a', '1d', WHO)]
      await Promise.all([ending, blocking])
      expect((await limiter.peek('a')).reason).toBe('blocked')
      expect(await limiter.overrides()).toHaveLength(1)
    }
  })

  it('a reset of a blocked key leaves what is charged behind it', async () => {
    const limiter = open()
    await limiter.block('a', '1m', WHO)
    const resetting = limiter.reset('a')
    await limiter.charge('a', { cost: 2 })
    await resetting
    expect((await limiter.peek('a')).remaining).toBe(0)
  })

  it('a block denies the next call, whatever other key has an override', async () => {
    const limiter = open()
    await limiter.override('b', { limit: 5, until: '1h', ...WHO })
    const blocking = limiter.block('a', '1h')
    expect(await limiter.decide('a')).toMatchObject({ reason: 'blocked' })
    await blocking
  })
})

describe('a record whose numbers no longer work', () => {
  let policies: readonly Policy[]
  const made = async () => {
    policies = [gcra({ limit: 100, window: '1d', burst: 10 })]
    const limiter = open({ policies: () => policies })
    await limiter.override('a', { limit: 1e9, until: '1h', ...WHO })
    policies = [gcra({ limit: 100, window: '1d' })]
    return limiter
  }

  it('acts under no list, and is still shown, explained and removed', async () => {
    const limiter = await made()
    expect((await limiter.peek('a')).limit).toBe(100)
    const shown = { key: 'a', actsUnder: 'none' }
    expect(await limiter.overrides()).toMatchObject([shown])
    expect((await limiter.overrides())[0]).not.toHaveProperty('limits')
    expect((await limiter.explain('a')).records).toMatchObject([shown])
    await limiter.removeOverride('a')
    expect(await limiter.overrides()).toEqual([])
  })

  it('is heard of, and throws nowhere', async () => {
    const limiter = await made()
    const seen: unknown[] = []
    limiter.on('override', ({ change, record }) => void seen.push([change, record.actsUnder]))
    await limiter.removeOverride('a')
    await limiter.override('a', { factor: 2, until: '1h', ...WHO })
    policies = []
    await open().removeOverride('a')
    await Promise.resolve()
    expect(seen).toEqual([
      ['removed', 'none'],
      ['set', 'every list'],
      ['removed', 'every list'],
    ])
  })
})

it('every change is an event of every limiter of the name', async () => {
  const [limiter, twin] = [open(), open()]
  const seen: unknown[] = []
  twin.on(
    'override',
    ({ type, key, change, record }) => void seen.push([type, key, change, record.kind, record.by]),
  )
  await limiter.override('a', { limit: 5, until: '1m', ...WHO })
  await limiter.block('a', '1m')
  await limiter.unblock('a')
  await limiter.removeOverride('a')
  await limiter.removeOverride('a')
  await Promise.resolve()
  expect(seen).toEqual([
    ['override', 'a', 'set', 'override', 'ops'],
    ['override', 'a', 'set', 'block', undefined],
    ['override', 'a', 'removed', 'block', undefined],
    ['override', 'a', 'removed', 'override', 'ops'],
  ])
})

it('the end of an override is an event on a store that its last limiter had left', async () => {
  const time = installFakeClock()
  const left = open()
  await left.override('a', { limit: 5, until: '1500ms', ...WHO })
  await left.close()
  await time.pass(1000)
  const changes: string[] = []
  open().on('override', ({ change }) => changes.push(change))
  clock.pass(1500)
  await time.pass(1000)
  expect(changes).toEqual(['ended'])
  time.restore()
})

describe('a store without records', () => {
  it('refuses overrides and reasons, and blocks as it did', async () => {
    store = Object.assign(memoryStore(), { records: undefined }) as unknown as Store
    const limiter = open()
    const refused = { code: 'INVALID_OPTION', message: expect.stringMatching(/keeps no records/) as string }
    await expect(limiter.override('a', { limit: 1, until: '1h', ...WHO })).rejects.toMatchObject(refused)
    await expect(limiter.overrides()).rejects.toMatchObject(refused)
    expect(() => limiter.on('override', () => {})).toThrow(/keeps no records/)
    await expect(limiter.block('a', '1h', WHO)).rejects.toMatchObject(refused)
    await expect(limiter.hold('a', '1h', WHO)).rejects.toMatchObject(refused)
    expect((await limiter.peek('a')).allowed).toBe(true)
    await limiter.block('a', '1h')
    expect((await limiter.peek('a')).reason).toBe('blocked')
    await limiter.unblock('a')
    await limiter.reset('a')
    await limiter.removeOverride('a')
    expect((await limiter.peek('a')).allowed).toBe(true)
  })
})

it('reads no more of a store that was closed and does not say so', async () => {
  const time = installFakeClock()
  const memory = memoryStore()
  const [keyspace, now] = [memory.keyspace.bind(memory), () => memory.now()]
  const own: Store = { guard, keyspace, now, records: () => memory.records!(), close: () => memory.close() }
  const limiter = open({ store: own })
  await limiter.override('a', { limit: 5, until: '1h', ...WHO })
  await own.close()
  await time.pass(5000) // it was an uncaught exception of a timer
  await limiter.close()
  time.restore()
})

it('a closed limiter writes nothing', async () => {
  const limiter = open()
  await limiter.close()
  const closed = { code: 'CLOSED' }
  await expect(limiter.override('a', { limit: 1, until: '1h', ...WHO })).rejects.toMatchObject(closed)
  await expect(limiter.overrides()).rejects.toMatchObject(closed)
  await expect(limiter.removeOverride('a')).rejects.toMatchObject(closed)
  await expect(limiter.block('a', '1m')).rejects.toMatchObject(closed)
  expect(await open().overrides()).toEqual([])
})
