import {
  createLimiter,
  gcra,
  type LimiterOptions,
  memoryStore,
  type PenaltyOptions,
  PolicyError,
  slidingLog,
  type Store,
} from '../../src/index.js'
import { FakeClock } from '@sluice/testing'
import { RemoteStore } from '@sluice/harness/stores'
import { expectWarnings } from '@sluice/harness/warnings'

const MINUTE = 60_000
const policies = [gcra({ limit: 2, window: '1m', name: 'calls' })]
const penalty: PenaltyOptions = { after: 3, block: '10m', factor: 2, maxBlock: '30m', forgetAfter: '1d' }

let clock: FakeClock
beforeEach(() => void (clock = new FakeClock()))
const open = (options: Partial<LimiterOptions> = {}) =>
  createLimiter({
    name: 'login',
    policies,
    penalty,
    store: memoryStore({ clock: clock.now }),
    ...options,
  })
type Limited = ReturnType<typeof open>

/** The reasons of so many calls, made one after the other. */
async function reasons(limiter: Limited, calls: number): Promise<(string | undefined)[]> {
  const seen: (string | undefined)[] = []
  for (let i = 0; i < calls; i++) seen.push((await limiter.consume('k')).reason)
  return seen
}

describe('a limiter with a penalty', () => {
  it('blocks a key with the refusal that completes the count, and says when it ends', async () => {
    const limiter = open()
    expect(await reasons(limiter, 4)).toEqual([undefined, undefined, 'limit', 'limit'])
    const third = await limiter.consume('k')
    expect(third).toMatchObject({ allowed: false, reason: 'limit', remaining: 0, retryAfterMs: 10 * MINUTE })
    expect(third.policies).toMatchObject([{ name: 'calls', remaining: 0, retryAfterMs: 10 * MINUTE }])
    expect(await limiter.consume('k')).toMatchObject({ reason: 'blocked', retryAfterMs: 10 * MINUTE })
    clock.pass(10 * MINUTE - 1)
    expect(await reasons(limiter, 1)).toEqual(['blocked'])
    clock.pass(1)
    expect(await reasons(limiter, 2)).toEqual([undefined, undefined])
  })

  it('blocks for longer with each further refusal, up to the longest block', async () => {
    const limiter = open()
    await reasons(limiter, 5)
    for (const minutes of [20, 30, 30]) {
      clock.pass(30 * MINUTE)
      expect(await reasons(limiter, 2)).toEqual([undefined, undefined])
      expect(await limiter.consume('k')).toMatchObject({ reason: 'limit', retryAfterMs: minutes * MINUTE })
    }
  })

  it('leaves the window as it is, so that a short block of a long window locks a caller out', async () => {
    const logins = slidingLog({ limit: 5, window: '90d' })
    for (const then of [{}, { then: 'window' }] as const) {
      const limiter = open({ policies: [logins], penalty: { block: '1h', ...then } })
      expect(await reasons(limiter, 6)).toEqual([...Array<undefined>(5).fill(undefined), 'limit'])
      clock.pass(60 * MINUTE)
      expect(await limiter.consume('k')).toMatchObject({
        reason: 'limit',
        retryAfterMs: (90 * 24 - 1) * 60 * MINUTE,
      })
    }
  })

  it("begins with a full allowance after each block with then: 'fresh'", async () => {
    expectWarnings(['PENALTY_FRESH'])
    const logins = slidingLog({ limit: 5, window: '90d' })
    const limiter = open({
      policies: [logins],
      penalty: { block: '1h', factor: 2, maxBlock: '3h', then: 'fresh' },
    })
    const five = Array<undefined>(5).fill(undefined)
    expect(await reasons(limiter, 5)).toEqual(five)
    for (const hours of [1, 2, 3, 3]) {
      const wait = { retryAfterMs: hours * 60 * MINUTE, resetAfterMs: hours * 60 * MINUTE }
      expect(await limiter.consume('k')).toMatchObject({ reason: 'limit', remaining: 0, ...wait })
      expect(await limiter.consume('k')).toMatchObject({ reason: 'blocked', ...wait })
      clock.pass(hours * 60 * MINUTE)
      expect(await limiter.peek('k')).toMatchObject({ allowed: true, remaining: 5, resetAfterMs: 0 })
      expect(await reasons(limiter, 5)).toEqual(five)
    }
  })

  it("keeps an operator's block, a hold and the count at a fresh start", async () => {
    const limiter = open({ penalty: { after: 1, block: '10m', factor: 2, then: 'fresh' } })
    await reasons(limiter, 3)
    await limiter.hold('k', '15m')
    clock.pass(10 * MINUTE)
    expect(await limiter.consume('k')).toMatchObject({ reason: 'held', retryAfterMs: 5 * MINUTE })
    clock.pass(5 * MINUTE)
    expect(await reasons(limiter, 2)).toEqual([undefined, undefined])
    expect(await limiter.consume('k')).toMatchObject({ reason: 'limit', retryAfterMs: 20 * MINUTE })
    await limiter.block('k', '1h')
    clock.pass(20 * MINUTE)
    expect(await limiter.consume('k')).toMatchObject({ reason: 'blocked', retryAfterMs: 40 * MINUTE })
  })

  it('says once for a name what a fresh start after a short block allows', () => {
    const written = expectWarnings(['PENALTY_FRESH'])
    const lists = [slidingLog({ limit: 5, window: '90d' }), gcra({ limit: 10, window: '1m' })]
    const make = (then: 'fresh' | 'window', block: string) =>
      open({ name: 'sign-in', policies: lists, penalty: { block, maxBlock: '365d', then } })
    for (const [then, block] of [
      ['window', '1h'],
      ['fresh', '90d'],
      ['fresh', '1h'],
      ['fresh', '1h'],
    ] as const)
      make(then, block)
    expect(written).toEqual([
      {
        code: 'PENALTY_FRESH',
        message:
          "penalty of 'sign-in': '5-per-90d' is full again after each block, so it allows 5 units every 1h",
      },
    ])
  })

  it('forgets a day after the key was full again and its block over', async () => {
    for (const early of [true, false]) {
      const limiter = open({ penalty: { ...penalty, after: 2 } })
      await reasons(limiter, 4)
      const { resetAfterMs } = await limiter.peek('k')
      expect(resetAfterMs).toBe(10 * MINUTE)
      clock.pass(resetAfterMs + 24 * 60 * MINUTE - (early ? 1 : 0))
      expect(await reasons(limiter, 4)).toEqual([undefined, undefined, 'limit', early ? 'blocked' : 'limit'])
    }
  })

  it('forgets with a reset', async () => {
    const limiter = open()
    await reasons(limiter, 6)
    await limiter.reset('k')
    expect(await reasons(limiter, 5)).toEqual([undefined, undefined, 'limit', 'limit', 'limit'])
    await limiter.reset('k')
    expect(await reasons(limiter, 3)).toEqual([undefined, undefined, 'limit'])
  })

  it('counts what acquire is refused, and no peek, no cost of 0 and no cost that never fits', async () => {
    const limiter = open({ penalty: { ...penalty, after: 1 } })
    await reasons(limiter, 2)
    await limiter.peek('k')
    await limiter.consume('k', { cost: 0 })
    await limiter.consume('k', { cost: 3 })
    expect(await limiter.peek('k')).toMatchObject({ reason: 'limit' })
    expect(await limiter.acquire('k', { maxWait: 0 })).toMatchObject({
      reason: 'limit',
      retryAfterMs: 600_000,
    })
    expect(await limiter.acquire('k')).toMatchObject({ reason: 'blocked' })
  })

  it('blames the policies that refused the call, and no other', async () => {
    const limiter = open({
      policies: [gcra({ limit: 100, window: '1s' }), ...policies],
      penalty: { block: '10m' },
    })
    await reasons(limiter, 2)
    const refused = await limiter.consume('k')
    expect(refused).toMatchObject({ policy: 'calls', remaining: 0, retryAfterMs: 10 * MINUTE })
    expect(refused.policies).toMatchObject([{ retryAfterMs: 0 }, { retryAfterMs: 10 * MINUTE }])
  })

  it('takes the latest block of an operator, and never shortens it', async () => {
    const limiter = open({ penalty: { block: '10m' } })
    await limiter.block('k', '1h')
    expect(await limiter.consume('k')).toMatchObject({ reason: 'blocked', retryAfterMs: 60 * MINUTE })
  })

  it('counts nothing in shadow mode', async () => {
    const store = memoryStore({ clock: clock.now })
    await reasons(open({ store, enforce: false }), 9)
    expect(await reasons(open({ store }), 3)).toEqual(['limit', 'limit', 'limit'])
  })

  it('counts for the tiers of one shape together', async () => {
    const limiter = open()
    await reasons(limiter, 4)
    const tier = { policies: [gcra({ limit: 1, window: '1m' })] }
    expect(await limiter.consume('k', tier)).toMatchObject({ reason: 'limit', retryAfterMs: 10 * MINUTE })
  })

  it('keeps other keys on the plain path, and apart', async () => {
    const limiter = open()
    await reasons(limiter, 5)
    expect(await limiter.consume('other')).toMatchObject({ allowed: true, remaining: 1 })
  })

  it('is kept by a full memory store while keys without a count can go', async () => {
    const limiter = open({
      store: memoryStore({ clock: clock.now, maxKeys: 100 }),
      penalty: { ...penalty, after: 2 },
    })
    limiter.on('warning', () => {})
    await reasons(limiter, 3)
    clock.pass(10 * MINUTE)
    for (let i = 0; i < 1000; i++) void limiter.decide(`flood ${i}`)
    expect(await reasons(limiter, 4)).toEqual([undefined, undefined, 'limit', 'blocked'])
  })
})

describe('a limiter with a penalty on a store elsewhere', () => {
  let store: RemoteStore
  beforeEach(() => void (store = new RemoteStore(clock.now, { maxAge: 1_000_000, maxKeys: 100 })))

  it('asks about every call until the block, and answers from memory during the block', async () => {
    const limiter = open({ store })
    await reasons(limiter, 6)
    expect(store.count('consume')).toBe(6)
    expect(await reasons(limiter, 20)).toEqual(Array.from({ length: 20 }, () => 'blocked'))
    expect(store.count('consume')).toBe(6)
  })

  it('is asked although a limiter of the same name without a penalty remembers a denial', async () => {
    const plain = createLimiter({ name: 'login', policies, store })
    await reasons(plain, 4)
    expect(store.count('consume')).toBe(3)
    expect(await reasons(open({ store }), 3)).toEqual(['limit', 'limit', 'limit'])
    expect(store.count('consume')).toBe(6)
  })

  it('counts in this process during an outage, and in the store again afterwards', async () => {
    const limiter = open({ store })
    await reasons(limiter, 3)
    store.fail('STORE_OOM')
    expect(await reasons(limiter, 6)).toEqual([undefined, undefined, 'limit', 'limit', 'limit', 'blocked'])
    store.recover()
    expect(await reasons(limiter, 3)).toEqual(['limit', 'limit', 'blocked'])
  })

  it.each(['allow', 'deny'] as const)("counts nothing under '%s' in an outage", async (onStoreError) => {
    const limiter = open({ store, onStoreError })
    await reasons(limiter, 4)
    store.fail('STORE_OOM')
    await reasons(limiter, 9)
    store.recover()
    expect(await reasons(limiter, 3)).toEqual(['limit', 'blocked', 'blocked'])
  })
})

describe('a penalty that cannot work', () => {
  const durations = ['0s', '-1s', '1 day', NaN, Infinity, 1.5, '366d', null, {}]
  it.each([
    ...[0, -1, 1.5, NaN, Infinity, 1_000_001, '3', null].map((after) => [{ block: '1m', after }, 'after']),
    ...[0, 0.5, -1, NaN, Infinity, 1001, '2', null].map((factor) => [{ block: '1m', factor }, 'factor']),
    ...[...durations, undefined].map((block) => [{ block }, 'block']),
    ...durations.map((maxBlock) => [{ block: '1ms', maxBlock }, 'maxBlock']),
    ...durations.map((forgetAfter) => [{ block: '1ms', forgetAfter }, 'forgetAfter']),
    [{ block: '10m', maxBlock: '9m' }, 'maxBlock'],
  ] as [PenaltyOptions, string][])('%j names %s', (given, name) => {
    const make = () => open({ penalty: given })
    expect(make).toThrow(PolicyError)
    expect(make).toThrow(
      expect.objectContaining({
        code: 'INVALID_PENALTY',
        message: expect.stringMatching(`^penalty.${name} must be .*, got `),
      }),
    )
  })

  it('says what was expected and what came', () => {
    expect(() => open({ penalty: { block: '10m', maxBlock: '9m' } })).toThrow(
      'penalty.maxBlock must be at least penalty.block, which is 10m, got "9m"',
    )
    expect(() => open({ penalty: 3 as never })).toThrow('penalty takes an object of options, got 3')
    expect(() => open({ penalty: { block: '1ms', duration: 5 } as never })).toThrow(
      "there is no option 'duration' of penalty: npx @sluice/cli option duration finds",
    )
  })

  it('is refused beside leases, also in shadow mode', () => {
    const make = () => open({ leases: { ttl: '1s' }, enforce: false })
    expect(make).toThrow(expect.objectContaining({ code: 'INVALID_OPTION' }))
  })

  it('is refused with a store that knows no penalties', () => {
    const inner = memoryStore()
    const store: Store = {
      local: true,
      keyspace: (name, list, report) => inner.keyspace(name, list, report),
      now: () => inner.now(),
      close: () => inner.close(),
    }
    expect(() => open({ store })).toThrow(expect.objectContaining({ code: 'INVALID_PENALTY' }))
  })

  it('says in `then` how a block ends, of two ways', () => {
    expect(() => open({ penalty: { block: '10m', then: 'later' as never } })).toThrow(
      expect.objectContaining({
        code: 'INVALID_PENALTY',
        message: `penalty.then must be 'window' or 'fresh', got "later"`,
      }),
    )
  })

  it('may be as short as a block and as long as a year', () => {
    expect(() => open({ penalty: { block: '365d' } })).not.toThrow()
    expect(() =>
      open({ penalty: { block: '1ms', maxBlock: '1ms', forgetAfter: '365d', factor: 1.5, after: 1e6 } }),
    ).not.toThrow()
  })
})
