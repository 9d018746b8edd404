import { FakeClock } from '@sluice/testing'
import {
  createLimiter,
  gcra,
  type Limiter,
  type LimiterOptions,
  memoryStore,
  slidingLog,
  slidingWindow,
  StoreError,
} from '../../src/index.js'
import { Lease } from '../../src/leases/lease.js'
import { leaseTermsOf } from '../../src/leases/lease-terms.js'
import { sharedStateOf } from '../../src/resilience/resilient-store.js'
import { chargeOf } from '../../src/stores/giving-back.js'
import { RemoteStore, settled } from '@sluice/harness/stores'

const policies = [slidingLog({ limit: 100, window: '1s' })]
const leases = { ttl: '200ms', size: 10 } as const

let clock: FakeClock
let store: RemoteStore
let limiter: Limiter
beforeEach(() => {
  clock = new FakeClock()
  store = new RemoteStore(clock.now)
  limiter = open()
})
afterEach(() => limiter.close())

const open = (options: Partial<LimiterOptions> = {}) =>
  createLimiter({ name: 'api', policies, store, leases, ...options })

const call = async (times: number, of = limiter) => {
  for (let i = 0; i < times; i++) await of.consume('k')
}
/** Makes `k` hot: of 24 units that are booked 16 are used, in 7 calls to the store, and 8 are in the lease. */
const warm = (of = limiter) => call(16, of)
/** As warm, with nothing left of the slice. */
const drained = (of = limiter) => call(24, of)
const isServed = (of = limiter, cost = 1) => 'allowed' in of.decide('k', { cost })
const allowedOf = async (count: number, of: readonly Limiter[] = [limiter]) => {
  let allowed = 0
  for (let i = 0; i < count; i++) if ((await of[i % of.length]!.consume('k')).allowed) allowed++
  return allowed
}

describe('a hot key', () => {
  it('is a key with several calls within one ttl: any other key costs one unit per call', async () => {
    await limiter.consume('k')
    clock.pass(200)
    await limiter.consume('k')
    expect((await limiter.peek('k')).remaining).toBe(98)
  })

  it('is served from memory as far as its lease goes, and then asks again', async () => {
    await warm()
    expect(store.count('consume')).toBe(7)
    for (let i = 0; i < 8; i++)
      expect(limiter.decide('k')).toMatchObject({ allowed: true, degraded: undefined })
    expect(store.count('consume')).toBe(7)
    expect(isServed()).toBe(false)
  })

  it('gets a lease as large as the demand of half of the ttl', async () => {
    limiter = open({ policies: [slidingLog({ limit: 1000, window: '1s' })] })
    for (let i = 0; i < 40; i++) {
      await call(1)
      clock.pass(19)
    }
    while (isServed()) clock.pass(19)
    await settled()
    const before = (await limiter.peek('k')).remaining
    for (let i = 0; i < 6; i++) {
      clock.pass(19)
      await call(1)
    }
    expect(before - (await limiter.peek('k')).remaining).toBe(6)
  })

  it('gets no larger lease than size', async () => {
    await drained()
    await call(1)
    expect((await limiter.peek('k')).remaining).toBe(65)
  })

  it('is served until the ttl has passed since its lease was asked for, not since the answer came', async () => {
    await drained()
    store.holdReplies()
    const second = limiter.consume('k')
    await settled()
    clock.pass(190)
    store.recover()
    await second
    clock.pass(9)
    expect(isServed()).toBe(true)
    clock.pass(1)
    expect(isServed()).toBe(false)
  })

  it('is served a thousandth less than the ttl, because clocks may run at different speeds', async () => {
    await warm()
    clock.pass(199.7)
    expect(isServed()).toBe(true)
    clock.pass(0.1)
    expect(isServed()).toBe(false)
  })

  it('leaves half of what remains to other processes', async () => {
    limiter = open({ policies: [slidingLog({ limit: 40, window: '1s' })] })
    await call(25)
    expect((await limiter.peek('k')).remaining).toBe(8)
  })

  it('serves nothing from an answer that comes later than the ttl', async () => {
    await drained()
    store.holdReplies()
    const second = limiter.consume('k')
    await settled()
    clock.pass(250)
    store.recover()
    expect((await second).allowed).toBe(true)
    expect(isServed()).toBe(false)
  })

  it('serves calls of a higher cost from its lease too, and asks for what the lease does not hold', async () => {
    await warm()
    expect(isServed(limiter, 5)).toBe(true)
    expect(isServed(limiter, 4)).toBe(false)
    expect(isServed(limiter, 3)).toBe(true)
  })

  it('asks once for all calls of the same moment', async () => {
    await drained()
    const calls = await Promise.all(Array.from({ length: 20 }, () => limiter.consume('k')))
    expect(calls.every(({ allowed }) => allowed)).toBe(true)
    expect(store.count('consume')).toBe(8)
  })

  it('is leased only while there is room for its lease', async () => {
    limiter = open({ leases: { ...leases, maxKeys: 1 } })
    await limiter.consume('another')
    await limiter.consume('another')
    await warm()
    expect(store.count('consume')).toBe(18)
    clock.pass(300)
    await warm()
    expect(store.count('consume')).toBe(25)
  })

  it('is decided by the store under other limits', async () => {
    await warm()
    const tier = { policies: [slidingLog({ limit: 50, window: '1s' })] }
    expect(limiter.decide('k', tier)).toBeInstanceOf(Promise)
  })
})

describe('a low limit', () => {
  it.each([1, 2, 3, 5, 10])('of %i is used in full, by one process and by three', async (limit) => {
    const low = [slidingLog({ limit, window: '1s' })]
    const one = open({ policies: low, name: 'one' })
    expect(await allowedOf(limit + 5, [one])).toBe(limit)
    const three = [1, 2, 3].map(() => open({ policies: low, name: 'three' }))
    expect(await allowedOf(3 * limit + 9, three)).toBe(limit)
  })
})

describe('a decision from a lease', () => {
  it('reports what the store answered when the lease was booked, with all of the lease used', async () => {
    await warm()
    clock.pass(50)
    const decision = limiter.decide('k')
    expect(decision).toMatchObject({
      allowed: true,
      limit: 100,
      remaining: 76,
      retryAfterMs: 0,
      resetAfterMs: 1150,
    })
  })

  it('lists every policy', async () => {
    limiter = open({ policies: [...policies, gcra({ limit: 1000, window: '1s' })] })
    await warm()
    expect((await limiter.consume('k')).policies).toMatchObject([
      { limit: 100, windowMs: 1000, remaining: 76 },
      { limit: 800, windowMs: 1000, remaining: 776 },
    ])
  })

  it('is settled in the store', async () => {
    await warm()
    const decision = await limiter.consume('k', { cost: 5 })
    await decision.settle(2)
    expect((await limiter.peek('k')).remaining).toBe(79)
    const another = await limiter.consume('k')
    await another.settle(11)
    expect((await limiter.peek('k')).remaining).toBe(69)
  })
})

describe('a lease', () => {
  it('counts as used for peek, and costs nothing to read', async () => {
    await warm()
    expect((await limiter.peek('k')).remaining).toBe(76)
    expect((await limiter.consume('k', { cost: 0 })).remaining).toBe(76)
  })

  it.each([
    ['reset', () => limiter.reset('k')],
    ['block', () => limiter.block('k', '1m')],
    ['hold', () => limiter.hold('k', '1m')],
  ])('is dropped by %s', async (_, act) => {
    await warm()
    await act()
    expect(isServed()).toBe(false)
  })

  it('is dropped by a block even while it is booked', async () => {
    await drained()
    store.holdReplies()
    const second = limiter.consume('k')
    await settled()
    const blocked = limiter.block('k', '1m')
    store.recover()
    await Promise.all([second, blocked])
    expect(await limiter.consume('k')).toMatchObject({ allowed: false, reason: 'blocked' })
  })

  it('is not changed by a refund, which goes to the store', async () => {
    await warm()
    await limiter.refund('k')
    expect((await limiter.peek('k')).remaining).toBe(77)
    for (let i = 0; i < 8; i++) expect(isServed()).toBe(true)
  })

  it('lets acquire book in the store, behind all units that are leased', async () => {
    await warm()
    expect(await limiter.acquire('k', { cost: 77, maxWait: 0 })).toMatchObject({ allowed: false })
    expect(await limiter.acquire('k', { cost: 76, maxWait: 0 })).toMatchObject({ allowed: true })
    expect(isServed()).toBe(true)
  })
})

describe('in an outage', () => {
  it('serves from a lease until it ends, and then follows onStoreError', async () => {
    limiter = open({ onStoreError: 'deny' })
    await warm()
    store.fail('STORE_UNAVAILABLE')
    expect(isServed()).toBe(true)
    clock.pass(200)
    expect(await limiter.consume('k')).toMatchObject({ allowed: false, degraded: 'unavailable' })
  })

  it('charges the local state with the calls alone, and leases nothing from it', async () => {
    await drained()
    store.fail('STORE_UNAVAILABLE')
    const calls = await Promise.all([limiter.consume('k'), limiter.consume('k')])
    expect(calls).toMatchObject([
      { allowed: true, degraded: 'unavailable', remaining: 99 },
      { allowed: true, degraded: 'unavailable', remaining: 98 },
    ])
    expect(await limiter.consume('k')).toMatchObject({ degraded: 'unavailable', remaining: 97 })
  })

  it('decides each call by the share of this process, where the booking does not fit in it', async () => {
    limiter = open({ onStoreError: { mode: 'local', share: 20 } })
    await drained()
    store.fail('STORE_UNAVAILABLE')
    const calls = await Promise.all([1, 2, 3, 4, 5, 6, 7].map(() => limiter.consume('k')))
    const reasons = calls.map(({ reason }) => reason)
    expect(reasons).toEqual([...Array(5).fill(undefined), 'limit', 'limit'])
  })

  it('reports a cost above that share as degraded, and never as too high', async () => {
    limiter = open({ onStoreError: { mode: 'local', share: 20 } })
    await drained()
    store.fail('STORE_UNAVAILABLE')
    const calls = await Promise.all([6, 1].map((cost) => limiter.consume('k', { cost })))
    expect(calls).toMatchObject([
      { reason: 'degraded', retryAfterMs: 1000 },
      { allowed: true, remaining: 4 },
    ])
  })

  it('rejects all calls that wait for one booking with its failure, under onStoreError throw', async () => {
    limiter = open({ onStoreError: 'throw' })
    await drained()
    store.fail('STORE_OOM')
    const calls = await Promise.allSettled([1, 2, 3].map(() => limiter.consume('k')))
    expect(calls.map((call) => (call as PromiseRejectedResult).reason.code)).toEqual(
      Array(3).fill('STORE_OOM'),
    )
  })
})

describe('calls that join a booking under way, and may not ask the store when it is answered', () => {
  beforeEach(() => {
    limiter = open({ onStoreError: 'throw' })
  })

  const join = async () => {
    store.holdReplies()
    const first = limiter.consume('k')
    await settled()
    return Promise.allSettled([first, ...[1, 2, 3].map(() => limiter.consume('k'))])
  }
  const answer = () => {
    const refusal = new StoreError('STORE_OVERLOADED', 'as the test says')
    jest.spyOn(sharedStateOf(store).channel, 'refusal').mockReturnValue(refusal)
    store.recover()
  }
  const isRejected = expect.objectContaining({
    reason: expect.objectContaining({ code: 'STORE_OVERLOADED' }),
  })

  it('reject if the answer comes after the ttl', async () => {
    await drained()
    const joined = join()
    await settled()
    clock.pass(250)
    answer()
    const [first, ...others] = await joined
    expect(first).toMatchObject({ value: { allowed: true } })
    expect(others).toEqual(Array(3).fill(isRejected))
  })

  it('reject if the booking is denied', async () => {
    await drained()
    await call(100, open())
    const joined = join()
    await settled()
    answer()
    expect(await joined).toEqual(Array(4).fill(isRejected))
  })
})

it('rejects calls after close, also on hot keys', async () => {
  await warm()
  await limiter.close()
  await expect(limiter.consume('k')).rejects.toMatchObject({ code: 'CLOSED' })
})

describe('what the store decides by', () => {
  const told = (policy: Parameters<typeof leaseTermsOf>[0][number], ttlMs: number) => {
    const { booked, reported } = leaseTermsOf([policy], ttlMs)
    return [
      booked[0]!.windowMs,
      booked[0]!.limit,
      booked[0]!.capacity,
      reported[0]!.windowMs,
      reported[0]!.capacity,
    ]
  }

  it.each([
    [
      'a log has a window longer by the ttl',
      slidingLog({ limit: 9, window: '1s' }),
      200,
      [1200, 9, 9, 1000, 9],
    ],
    ['so has a sliding window', slidingWindow({ limit: 9, window: '1s' }), 200, [1200, 9, 9, 1000, 9]],
    [
      'whose buckets divide it',
      slidingWindow({ limit: 9, window: '980ms', buckets: 7 }),
      200,
      [1183, 9, 9, 980, 9],
    ],
    [
      'weighted buckets a smaller limit too',
      slidingWindow({ limit: 1000, window: '1s', count: 'weighted' }),
      250,
      [1250, 833, 833, 1000, 833],
    ],
    ['gcra less capacity', gcra({ limit: 1000, window: '1s', burst: 300 }), 250, [1000, 1000, 50, 1000, 50]],
    ['rounded up', gcra({ limit: 3, window: '1s', burst: 5 }), 500, [1000, 3, 3, 1000, 3]],
  ])('%s', (_, policy, ttlMs, numbers) => {
    expect(told(policy, ttlMs)).toEqual(numbers)
  })
})

describe('leases that cannot work', () => {
  it.each([
    [{ leases: {} }, 'INVALID_DURATION'],
    [{ leases: true }, 'INVALID_OPTION'],
    [{ leases: { ttl: '2h' } }, 'INVALID_DURATION'],
    [{ leases: { ttl: '1s', size: 0 } }, 'INVALID_OPTION'],
    [{ leases: { ttl: '1s', size: 1.5 } }, 'INVALID_OPTION'],
    [{ leases: { ttl: '1s', maxKeys: NaN } }, 'INVALID_OPTION'],
    [{ policies: [gcra({ limit: 10, window: '1s' })], leases: { ttl: '1s' } }, 'INVALID_OPTION'],
    [{ policies: [slidingWindow({ limit: 1, window: '1s', count: 'weighted' })] }, 'INVALID_OPTION'],
  ])('%j are refused', (options, code) => {
    expect(() => open(options as unknown as Partial<LimiterOptions>)).toThrow(
      expect.objectContaining({ name: 'PolicyError', code }),
    )
  })

  it.each([
    ['log', slidingLog({ limit: 10, window: '365d' })],
    ['window', slidingWindow({ limit: 10, window: '365d' })],
    ['weighted window', slidingWindow({ limit: 10, window: '365d', count: 'weighted' })],
  ])('are rejected where the longer window of a sliding %s is too long', (_, policy) => {
    const why =
      /^leases with a ttl of 1000 ms: policy '10-per-365d' is booked under a longer window: window must be /
    expect(() => open({ policies: [policy], leases: { ttl: '1s' } })).toThrow(
      expect.objectContaining({ code: 'INVALID_OPTION', message: expect.stringMatching(why) }),
    )
  })

  it('are rejected with how much is kept back', () => {
    expect(() => open({ policies: [gcra({ limit: 10, window: '1s' })], leases: { ttl: '1s' } })).toThrow(
      "policy '10-per-1s' would keep all of its 10 units back",
    )
  })
})

it('gives its units back with the epoch of the answer that brought them', async () => {
  const lease = new Lease(policies, 200_000, { calledAt: 0, remaining: 100 })
  const keyspace = memoryStore().keyspace('api', policies, () => {})
  const filledBy = { ...(await keyspace.decide('consume', 'k', 5, 0)), epoch: 7 }
  lease.fill(filledBy, 4, 200_000, 0)
  expect(chargeOf(lease.serve(1, 1)!, 1)).toEqual({
    at: filledBy.at,
    cost: 1,
    decidedAt: filledBy.at,
    epoch: 7,
  })
  expect(lease.take('k', 1, 1)!.booking).toMatchObject({ cost: 1, decidedAt: filledBy.at, epoch: 7 })
})

it('leaves a memory store unchanged, which has nothing to lease', async () => {
  const local = open({
    store: memoryStore({ clock: clock.now }),
    policies: [gcra({ limit: 10, window: '1s' })],
  })
  expect(local.decide('k')).toMatchObject({ allowed: true, remaining: 9 })
})

describe.each([
  ['a sliding log', slidingLog],
  ['a sliding window', slidingWindow],
])('a limit of %s that changes', (_, algorithm) => {
  const policiesOf = (limit: number) => [algorithm({ limit, window: '1h' })]
  let inForce: ReturnType<typeof policiesOf>
  const openChanging = () => open({ policies: () => inForce })
  beforeEach(() => void (inForce = policiesOf(24)))

  it('admits at the next call what it denied, once it is raised, in processes with a lease and without', async () => {
    limiter = openChanging()
    const other = openChanging()
    expect(await allowedOf(30)).toBe(24)
    expect((await limiter.consume('k')).allowed).toBe(false)
    expect((await other.consume('k')).allowed).toBe(false)
    inForce = policiesOf(240)
    for (const each of [limiter, other])
      expect(await each.consume('k')).toMatchObject({ allowed: true, limit: 240 })
    expect((await limiter.peek('k')).remaining).toBeGreaterThan(100)
    await other.close()
  })

  it('serves no call from a lease that was booked under other numbers, and counts its units', async () => {
    inForce = policiesOf(100)
    limiter = openChanging()
    await warm()
    const asked = store.count('consume')
    inForce = policiesOf(5)
    expect(await limiter.consume('k')).toMatchObject({ allowed: false, limit: 5 })
    inForce = policiesOf(200)
    expect(await limiter.consume('k')).toMatchObject({ allowed: true, limit: 200 })
    expect(store.count('consume') - asked).toBe(2)
    inForce = policiesOf(100)
    expect(isServed()).toBe(true)
  })
})
