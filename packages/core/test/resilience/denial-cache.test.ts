import { FakeClock } from '@sluice/testing'
import {
  createLimiter,
  type Decision,
  gcra,
  type Limiter,
  type LimiterOptions,
  type Policy,
  slidingLog,
  slidingWindow,
} from '../../src/index.js'
import { DenialCache } from '../../src/resilience/denial-cache.js'
import { RemoteStore } from '@sluice/harness/stores'

const twoIn10s = slidingLog({ limit: 2, window: '10s' })

let clock: FakeClock
let store: RemoteStore
let limiter: Limiter
beforeEach(() => {
  clock = new FakeClock()
  store = new RemoteStore(clock.now, { maxAge: 1_000_000, maxKeys: 100 })
  limiter = open()
})

const open = (options: Partial<LimiterOptions> = {}) =>
  createLimiter({ name: 'api', policies: [twoIn10s], store, ...options })

/** Uses `key` up and has it denied once, by the store. */
async function exhaust(key = 'k'): Promise<void> {
  await limiter.consume(key, { cost: 2 })
  expect((await limiter.consume(key)).allowed).toBe(false)
}

/** Whether the store was asked to decide. */
async function asks(call: () => unknown): Promise<boolean> {
  const before = store.count('consume')
  await call()
  return store.count('consume') > before
}

function shown(decision: Decision): object {
  const { allowed, reason, remaining, retryAfterMs, resetAfterMs, policy, policies, limit } = decision
  return { allowed, reason, remaining, retryAfterMs, resetAfterMs, policy, policies, limit }
}

it('a cached denial of reserved units says when the next of them come back, also of another cost', () => {
  const cache = new DenialCache({ maxAge: 1_000_000, maxKeys: 1 }, { now: clock.now })
  const now = clock.now()
  const held = { held: [2], nextEnd: now + 2_000_000 }
  const denial = { now, at: now + 9_000_000, reason: 'limit', binding: 0, remaining: 0 } as const
  const rest = { resetAt: now + 9_000_000, parts: undefined, booking: undefined, nextUnitAt: now + 9_000_000 }
  cache.record([twoIn10s], 'k', 1, cache.begin(), { ...denial, ...rest, ...held })
  const get = (cost: number) => cache.get([twoIn10s], 'k', cost)
  expect(get(1)).toMatchObject(held)
  for (let i = 0; i < 3; i++) expect(get(2)).toBeUndefined() // which ask for their own waits
  expect(get(2)).toMatchObject(held)
})

it('a cached denial tells no cost to wait for less than a smaller one that was told later', () => {
  const cache = new DenialCache({ maxAge: 1_000_000, maxKeys: 1 }, { now: clock.now })
  const now = clock.now()
  const policies = [slidingLog({ limit: 20, window: '10s' })]
  const full = { resetAt: now + 9_000_000, parts: undefined, booking: undefined }
  const deny = (cost: number, at: number): void =>
    cache.record(policies, 'k', cost, cache.begin(), {
      ...full,
      now,
      at,
      reason: 'limit',
      binding: 0,
      remaining: 0,
    })
  deny(12, now + 1_000_000)
  deny(3, now + 2_000_000) // as another process was allowed some meanwhile
  deny(2, now + 1_000_000)
  deny(1, now + 1_000_000)
  expect([2, 3, 7].map((cost) => cache.get(policies, 'k', cost)!.at - now)).toEqual([
    1_000_000, 2_000_000, 9_000_000,
  ])
})

describe('a cached denial', () => {
  it('denies the next call from memory, at once', async () => {
    await exhaust()
    expect(await asks(() => expect(limiter.decide('k')).toMatchObject({ allowed: false }))).toBe(false)
  })

  it('reads at each moment as the store would answer, also under several policies', async () => {
    const policies = [twoIn10s, gcra({ limit: 1, window: '5s' })]
    await limiter.consume('k', { policies })
    clock.pass(4200)
    await limiter.consume('k', { policies })
    for (const ms of [0, 1, 0.5, 300, 498]) {
      clock.pass(ms)
      const known = limiter.decide('k', { policies }) as Decision
      expect(shown(known)).toEqual(shown(await limiter.peek('k', { policies })))
    }
  })

  it('says what was used as the store did: under a block, and above the capacity', async () => {
    await limiter.charge('k', { cost: 3 })
    await limiter.charge('banned')
    await limiter.block('banned', '10m')
    for (const [key, used] of [
      ['k', 3],
      ['banned', 1],
    ] as const) {
      await limiter.consume(key)
      expect(await asks(async () => expect((await limiter.consume(key)).policies[0]!.used).toBe(used))).toBe(
        false,
      )
    }
  })

  it('says what is held as the store did, also to other costs', async () => {
    store = new RemoteStore(clock.now, { maxAge: 1_000_000, maxKeys: 100 }, true)
    limiter = open({ reservations: {}, policies: [slidingLog({ limit: 10, window: '10s' })] })
    await limiter.reserve('k', { cost: 10, ttl: '5s' })
    for (const cost of [2, 4, 6, 8]) await limiter.consume('k', { cost })
    expect(shown(limiter.decide('k', { cost: 2 }) as Decision)).toEqual(
      shown(await limiter.peek('k', { cost: 2 })),
    )
    expect(limiter.decide('k', { cost: 10 })).toMatchObject({ policies: [{ used: 10, held: 10 }] })
  })

  it('ends at the instant at which the call would pass', async () => {
    await limiter.consume('k', { cost: 2 })
    clock.pass(9500)
    await limiter.consume('k')
    clock.pass(499.999)
    expect(await asks(() => limiter.consume('k'))).toBe(false)
    clock.pass(0.001)
    expect(await limiter.consume('k')).toMatchObject({ allowed: true })
  })

  it('ends after maxAge, so that corrections by other processes are seen', async () => {
    await exhaust()
    clock.pass(999.999)
    expect(await asks(() => limiter.consume('k'))).toBe(false)
    clock.pass(0.001)
    expect(await asks(() => limiter.consume('k'))).toBe(true)
  })

  it('is valid from when the call was sent, because the store may have decided late', async () => {
    const even = open({ policies: [gcra({ limit: 10, window: '1s', burst: 1 })] })
    await even.consume('k')
    store.stop()
    const denied = even.consume('k')
    clock.pass(30)
    store.recover()
    expect((await denied).retryAfterMs).toBe(70)
    clock.pass(39.999)
    expect(await asks(() => even.consume('k'))).toBe(false)
    clock.pass(0.001)
    expect(await asks(() => even.consume('k'))).toBe(true)
  })

  it('never reports a wait that is too short, because the reply may have been late', async () => {
    const even = open({ policies: [gcra({ limit: 10, window: '1s', burst: 1 })] })
    await even.consume('k')
    store.holdReplies()
    const denied = even.consume('k')
    clock.pass(30)
    store.recover()
    await denied
    clock.pass(20)
    expect((even.decide('k') as Decision).retryAfterMs).toBe(80)
  })

  it.each(['block', 'hold'] as const)('is kept for a %s as well', async (bar) => {
    await limiter[bar]('k', '10m')
    const { reason } = await limiter.consume('k')
    expect(await asks(() => limiter.consume('k'))).toBe(false)
    expect(limiter.decide('k')).toMatchObject({ reason, retryAfterMs: 600_000 })
  })

  it('does not apply to calls of another cost, whose wait only the store knows', async () => {
    const even = open({ policies: [gcra({ limit: 10, window: '1s' })] })
    await even.consume('k', { cost: 10 })
    await even.consume('k')
    expect(await asks(() => even.consume('k', { cost: 3 }))).toBe(true)
    expect(even.decide('k', { cost: 3 })).toMatchObject({
      allowed: false,
      retryAfterMs: 300,
      reason: 'limit',
    })
    expect(even.decide('k')).toMatchObject({ allowed: false, retryAfterMs: 100, reason: 'limit' })
  })

  it('does not apply to a lower cost', async () => {
    await limiter.consume('k')
    await limiter.consume('k', { cost: 2 })
    expect(await limiter.consume('k')).toMatchObject({ allowed: true })
  })

  it('does not apply to another key', async () => {
    await exhaust()
    expect(await limiter.consume('other')).toMatchObject({ allowed: true })
  })

  it('is shared by all limiters that share the state', async () => {
    await exhaust()
    expect(await asks(() => open().consume('k'))).toBe(false)
    expect(await asks(() => open({ name: 'web' }).consume('k'))).toBe(true)
  })
})

describe('a caller who varies the cost', () => {
  const tenASecond = gcra({ limit: 10, window: '1s' })

  /** Uses `key` up and has these costs denied, each by the store. */
  async function exhaustFor(
    costs: readonly number[],
    policies: readonly Policy[] = [tenASecond],
  ): Promise<void> {
    await limiter.consume('k', { cost: 10, policies })
    for (const cost of costs) expect(await asks(() => limiter.consume('k', { cost, policies }))).toBe(true)
  }

  const waitOf = (cost: number, policies: readonly Policy[] = [tenASecond]): number =>
    (limiter.decide('k', { cost, policies }) as Decision).retryAfterMs

  it('gets the exact waits of four costs', async () => {
    await exhaustFor([2, 4, 6, 8])
    expect([2, 4, 6, 8].map((cost) => waitOf(cost))).toEqual([200, 400, 600, 800])
  })

  it('gets of any other cost the least wait of a larger one that is cached', async () => {
    await exhaustFor([8, 2, 6, 4])
    expect([1, 3, 5, 7].map((cost) => waitOf(cost))).toEqual([200, 400, 600, 800])
  })

  it('waits until the allowance is full where no larger cost is cached', async () => {
    await exhaustFor([2, 4, 6, 8])
    expect([9, 10].map((cost) => waitOf(cost))).toEqual([1000, 1000])
  })

  it('asks again with a lower cost only when a unit has come free', async () => {
    await exhaustFor([9, 8, 7, 6])
    clock.pass(99.999)
    for (const cost of [5, 4, 3, 2, 1]) expect(await asks(() => waitOf(cost))).toBe(false)
    clock.pass(0.001)
    expect(await asks(() => limiter.consume('k', { cost: 5, policies: [tenASecond] }))).toBe(true)
    for (const cost of [4, 3, 2]) expect(await asks(() => waitOf(cost))).toBe(false)
    expect(await limiter.consume('k', { policies: [tenASecond] })).toMatchObject({ allowed: true })
  })

  it('waits for the policy that is full last, under several', async () => {
    const policies = [gcra({ limit: 10, window: '1s' }), gcra({ limit: 10, window: '5s', name: 'slow' })]
    await exhaustFor([2, 4, 6, 8], policies)
    const decision = limiter.decide('k', { cost: 10, policies }) as Decision
    expect(shown(decision)).toEqual(shown(await limiter.peek('k', { cost: 10, policies })))
  })

  it('gets the exact waits of four costs under the limits of each tier', async () => {
    const half = [gcra({ limit: 5, window: '1s', burst: 10 })]
    await exhaustFor([1, 2, 3, 4])
    for (const cost of [1, 2, 3, 4])
      expect(await asks(() => limiter.consume('k', { cost, policies: half }))).toBe(true)
    expect([1, 4, 5].map((cost) => waitOf(cost))).toEqual([100, 400, 1000])
    expect([1, 4, 5].map((cost) => waitOf(cost, half))).toEqual([200, 800, 2000])
  })

  it.each(['block', 'hold'] as const)('does not ask during a %s', async (bar) => {
    await limiter[bar]('k', '10m')
    for (const cost of [0, 1, 2]) await limiter.consume('k', { cost })
    await limiter.consume('k', { cost: 0 })
    expect(store.count('consume')).toBe(3)
  })

  it('does not ask during the block of a penalty, and before it each time', async () => {
    const penalty = { after: 6, block: '10m' } as const
    limiter = open({ policies: [tenASecond], penalty })
    await limiter.consume('k', { cost: 10 })
    for (const cost of [1, 2, 3, 4, 5, 6]) await limiter.consume('k', { cost })
    expect(store.count('consume')).toBe(7)
    for (let i = 0; i < 100; i++)
      expect(await limiter.consume('k', { cost: 1 + (i % 10) })).toMatchObject({ reason: 'blocked' })
    expect(store.count('consume')).toBe(11)
  })
})

describe('a cached denial is removed by', () => {
  it('a reset', async () => {
    await exhaust()
    await limiter.reset('k')
    expect(await limiter.consume('k')).toMatchObject({ allowed: true })
  })

  it('a refund', async () => {
    await exhaust()
    await limiter.refund('k')
    expect(await limiter.consume('k')).toMatchObject({ allowed: true })
  })

  it('a settled decision', async () => {
    const decision = await limiter.consume('k', { cost: 2 })
    await limiter.consume('k')
    await decision.settle(1)
    expect(await limiter.consume('k')).toMatchObject({ allowed: true })
  })

  it('a cancelled booking', async () => {
    await limiter.consume('k', { cost: 2 })
    const abort = new AbortController()
    const waiting = limiter.acquire('k', { signal: abort.signal }).catch(() => 'aborted')
    await new Promise((resolve) => setImmediate(resolve))
    expect(await limiter.consume('k')).toMatchObject({ retryAfterMs: 10_000 })
    abort.abort()
    expect(await waiting).toBe('aborted')
    expect(await asks(() => limiter.consume('k'))).toBe(true)
  })

  it('a booking, which makes the wait longer', async () => {
    await exhaust()
    const abort = new AbortController()
    const waiting = limiter.acquire('k', { cost: 2, signal: abort.signal }).catch(() => {})
    await new Promise((resolve) => setImmediate(resolve))
    expect(await limiter.consume('k')).toMatchObject({ retryAfterMs: 20_000 })
    abort.abort()
    await waiting
  })

  it('a raised limit', async () => {
    await exhaust()
    const raised = [slidingLog({ limit: 3, window: '10s' })]
    expect(await limiter.consume('k', { policies: raised })).toMatchObject({ allowed: true })
    expect(
      await asks(() => limiter.consume('k', { policies: [slidingLog({ limit: 3, window: '10s' })] })),
    ).toBe(true)
  })

  it('a block, which ends at another instant', async () => {
    await exhaust()
    await limiter.block('k', '1h')
    expect(await limiter.consume('k')).toMatchObject({ reason: 'blocked', retryAfterMs: 3_600_000 })
  })

  it('a reset whose answer comes first', async () => {
    await limiter.consume('k', { cost: 2 })
    store.holdReplies()
    const denied = limiter.consume('k')
    const reset = limiter.reset('k')
    await new Promise((resolve) => setImmediate(resolve))
    await store.replyLastFirst()
    await Promise.all([reset, denied])
    expect(await limiter.consume('k')).toMatchObject({ allowed: true })
  })
})

describe('a call that waits for reserved units', () => {
  beforeEach(() => jest.useFakeTimers())
  afterEach(() => jest.useRealTimers())

  it.each([
    ['acquire', 'acquire'],
    ['reserve', 'reserve'],
    ['consume', 'acquire'],
    ['consume', 'reserve'],
  ] as const)('asks again each second, whatever denial of a %s is remembered: %s', async (first, then) => {
    const now = () => Math.round(performance.now() * 1000)
    store = new RemoteStore(now, { maxAge: 1_000_000, maxKeys: 100 }, true)
    limiter = open({ reservations: {}, policies: [slidingWindow({ limit: 100, window: '1h' })] })
    const { reservation } = await limiter.reserve('k', { cost: 100, ttl: '10m' })
    const call = (method: typeof first | typeof then): Promise<Decision> => {
      if (method === 'consume') return limiter.consume('k', { cost: 5 })
      const options = { cost: 5, maxWait: '30s' } as const
      return method === 'acquire'
        ? limiter.acquire('k', options)
        : limiter.reserve('k', { ...options, ttl: '1m' })
    }
    const calls = [call(first)]
    for (let i = 0; i < 2; i++) {
      await jest.advanceTimersByTimeAsync(200)
      calls.push(call(then))
    }
    await jest.advanceTimersByTimeAsync(200)
    await reservation!.release()
    await jest.advanceTimersByTimeAsync(1000)
    const waits = (await Promise.all(calls)).map(({ allowed, waitMs }) => allowed && waitMs)
    expect(waits).toEqual([first === 'consume' ? false : 1000, 1000, 1000])
  })
})

describe('the denial cache', () => {
  it('is not used by peek', async () => {
    await exhaust()
    await limiter.peek('k')
    expect(store.count('peek')).toBe(1)
  })

  it('holds no more keys than the store allows', async () => {
    for (let i = 0; i < 200; i++) await exhaust(`k${i}`)
    let known = 0
    for (let i = 0; i < 200; i++) if ('allowed' in limiter.decide(`k${i}`)) known++
    expect(known).toBeGreaterThanOrEqual(50)
    expect(known).toBeLessThanOrEqual(100)
  })

  it('is off if the store has no bounds for it', async () => {
    store = new RemoteStore(clock.now)
    limiter = open()
    await exhaust()
    expect(await asks(() => limiter.consume('k'))).toBe(true)
  })
})
