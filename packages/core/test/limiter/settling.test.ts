import { FakeClock } from '@sluice/testing'
import { callsOf, monitor, startRedis } from '@sluice/harness/redis'
import {
  type Answer,
  createLimiter,
  type Decision,
  gcra,
  type Limiter,
  type LimiterOptions,
  memoryStore,
  slidingLog,
  type StoreErrorCode,
  tokenBucket,
} from '../../src/index.js'
import { redisStore } from '../../src/stores/redis/index.js'
import { RemoteStore } from '@sluice/harness/stores'
import { withoutRecords } from '../stores/redis/one-redis.js'

let clock: FakeClock
let remote: RemoteStore
beforeEach(() => {
  clock = new FakeClock()
  remote = new RemoteStore(clock.now)
})

const minute = (limit: number) => [slidingLog({ limit, window: '1m' })]
const open = (options: Partial<LimiterOptions> = {}): Limiter =>
  createLimiter({ name: 'api', policies: minute(3), store: remote, ...options })

/** Limiters whose charges lie in a store, in what stands in for it, and in a lease. */
const deciders: readonly (readonly [string, (limit: number) => Limiter])[] = [
  ['the store', (limit) => open({ policies: minute(limit), store: memoryStore({ clock: clock.now }) })],
  [
    'this process while the store is down',
    (limit) => {
      remote.fail('STORE_OOM')
      return open({ policies: minute(limit) })
    },
  ],
  ['a limiter with leases', (limit) => open({ policies: minute(limit), leases: { ttl: '10s', size: 10 } })],
]

describe.each(deciders)('slow calls that %s decided', (_, openFor) => {
  /** Of so many calls in this instant, those that passed. */
  const passed = async (limiter: Limiter, calls: number): Promise<Decision[]> => {
    const decisions: Decision[] = []
    for (let i = 0; i < calls; i++) decisions.push(await limiter.consume('k'))
    return decisions.filter(({ allowed }) => allowed)
  }

  it('free no units of other calls (6 passed in one instant under 3 a minute)', async () => {
    const limiter = openFor(3)
    const slow = await passed(limiter, 3)
    clock.pass(121_000)
    const quick = await passed(limiter, 3)
    expect([slow.length, quick.length]).toEqual([3, 3])
    for (const decision of slow) await expect(decision.settle(0)).resolves.toBe(0)
    expect(await passed(limiter, 3)).toEqual([])
  })

  it('free their own units while those count', async () => {
    const limiter = openFor(3)
    const slow = await passed(limiter, 3)
    clock.pass(59_000)
    for (const decision of slow) await expect(decision.settle(0)).resolves.toBe(-1)
    expect(await passed(limiter, 4)).toHaveLength(3)
  })

  it('never let more than 5 failed logins through within a minute (20 came within 177 ms)', async () => {
    const limiter = openFor(5)
    const slow: Decision[] = []
    for (let opened = 0; opened < 20; opened += 5) {
      slow.push(...(await passed(limiter, 5)))
      clock.pass(70_000)
    }
    expect(slow).toHaveLength(20)
    const failures: number[] = []
    for (let attempt = 0; attempt < 400; attempt++, clock.pass(700)) {
      if ((await passed(limiter, 1)).length > 0) failures.push(clock.now())
      const [success] = await passed(limiter, 1)
      if (attempt % 3 === 0) await success?.settle(0)
      else if (success) slow.push(success)
      await slow.shift()?.settle(0)
    }
    for (const end of failures) {
      const within = failures.filter((at) => at > end - 60_000_000 && at <= end)
      expect(within.length).toBeLessThanOrEqual(5)
    }
    expect(failures.length).toBeGreaterThan(10)
  })
})

it('gives back units that a lease served as of when the lease was booked', async () => {
  const limiter = open({ policies: minute(100), leases: { ttl: '10s', size: 10 } })
  const booked: Decision[] = []
  for (let call = 0; call < 16; call++) booked.push(await limiter.consume('k'))
  const served = Array.from({ length: 8 }, () => limiter.decide('k') as Decision)
  expect(served.every(({ allowed }) => allowed)).toBe(true) // at once, so from memory
  clock.pass(69_999)
  await expect(served.shift()!.settle(0)).resolves.toBe(-1)
  clock.pass(1) // a window and the lease's time are over
  const others = await Promise.all(Array.from({ length: 100 }, () => limiter.consume('k')))
  expect(others.filter(({ allowed }) => allowed)).toHaveLength(100)
  for (const decision of [...booked, ...served]) await expect(decision.settle(0)).resolves.toBe(0)
  expect(await limiter.consume('k')).toMatchObject({ allowed: false })
})

it('leaves no part of a tick that only drained because of the charge', () => {
  const store = memoryStore({ clock: clock.now })
  const policies = [gcra({ limit: 2, window: '2h', burst: 2 })] // a tick is 1 ms
  const keyspace = store.keyspace('api', policies, () => {})
  const ask = (kind: 'consume' | 'book', cost: number, maxWait = 0) =>
    keyspace.decide(kind, 'k', cost, maxWait) as Answer
  clock.pass(0.001)
  const { at, now: decidedAt } = ask('consume', 2)
  clock.pass(0.999)
  void keyspace.correct({ kind: 'hold', key: 'k', duration: 5_400_000_000 })
  const place = ask('book', 1, 6_000_000_000) // 999 us into a tick of the debt
  void keyspace.correct({ kind: 'release', key: 'k', charge: { at, cost: 2, decidedAt }, units: 2 })
  clock.pass(5_400_001) // a tick after the turn of the place
  expect(ask('consume', 1)).toMatchObject({ reason: undefined })
  expect(ask('consume', 1).at - place.at).toBeGreaterThanOrEqual(3_600_000_000)
})

it('gives an interval bucket back what its refills since cannot have covered', async () => {
  const policies = [tokenBucket({ limit: 2, window: '10s', capacity: 10, refill: 'interval' })]
  const limiter = open({ policies, store: memoryStore({ clock: clock.now }) })
  const decision = await limiter.consume('k', { cost: 8 })
  clock.pass(12_000) // one refill of 2 tokens
  expect(await decision.settle(0)).toBe(-6)
  expect((await limiter.peek('k')).remaining).toBe(10)
})

describe('settle', () => {
  it('resolves to the units that took effect, and rejects the second time', async () => {
    const limiter = open({ policies: minute(10) })
    const less = await limiter.consume('k', { cost: 5 })
    const more = await limiter.consume('k', { cost: 1 })
    const late = await limiter.consume('another', { cost: 5 })
    await expect(less.settle(2)).resolves.toBe(-3)
    await expect(more.settle(4)).resolves.toBe(3)
    clock.pass(60_000)
    await expect(late.settle(2)).resolves.toBe(0)
    for (const decision of [less, more, late]) {
      await expect(decision.settle(0)).rejects.toMatchObject({ code: 'ALREADY_SETTLED' })
    }
  })

  const refused = ['STORE_OOM', 'STORE_READONLY', 'STORE_LOADING', 'STORE_BUSY', 'STORE_FORBIDDEN'] as const
  it.each(refused)('may be called again after %s, because it was not carried out', async (code) => {
    const limiter = open()
    const decision = await limiter.consume('k')
    remote.fail(code)
    await expect(decision.settle(0)).rejects.toMatchObject({ code, sent: false })
    remote.recover()
    await expect(decision.settle(0)).resolves.toBe(-1)
    await expect(decision.settle(0)).rejects.toMatchObject({ code: 'ALREADY_SETTLED' })
    expect((await limiter.peek('k')).remaining).toBe(3)
  })

  const uncertain: readonly StoreErrorCode[] = ['STORE_TIMEOUT', 'STORE_UNAVAILABLE', 'STORE_ERROR']
  it.each(uncertain)(
    'may not be called again after %s, because it may have been carried out',
    async (code) => {
      const decision = await open().consume('k')
      remote.fail(code)
      await expect(decision.settle(0)).rejects.toMatchObject({ code, sent: true })
      remote.recover()
      await expect(decision.settle(0)).rejects.toMatchObject({ code: 'ALREADY_SETTLED' })
    },
  )

  describe('against a store that does not answer', () => {
    beforeEach(() => jest.useFakeTimers())
    afterEach(() => jest.useRealTimers())

    it('may not be called again when no answer came in time, and gives back once', async () => {
      const limiter = open()
      const decision = await limiter.consume('k')
      remote.stop()
      const failure = decision.settle(0).catch((error: unknown) => error)
      await jest.advanceTimersByTimeAsync(60)
      expect(await failure).toMatchObject({ code: 'STORE_TIMEOUT', sent: true })
      remote.recover()
      await expect(decision.settle(0)).rejects.toMatchObject({ code: 'ALREADY_SETTLED' })
      expect((await limiter.peek('k')).remaining).toBe(3)
    })

    it('may be called again when the open circuit kept it from being sent', async () => {
      const limiter = open()
      const decision = await limiter.consume('k')
      remote.stop()
      for (let i = 0; i < 20; i++) {
        void limiter.consume('another')
        await jest.advanceTimersByTimeAsync(10)
      }
      await expect(decision.settle(0)).rejects.toMatchObject({ code: 'STORE_TIMEOUT', sent: false })
      expect(remote.count('release')).toBe(0)
      remote.recover()
      for (let i = 0; i < 20; i++) {
        void limiter.consume('another')
        await jest.advanceTimersByTimeAsync(10)
      }
      await expect(decision.settle(0)).resolves.toBe(-1)
    })
  })
})

it('settles 50,000 more on a log in Redis by script calls of 1,000 units', async () => {
  const server = await startRedis()
  const store = withoutRecords(redisStore({ host: server.host, port: server.port }))
  const policies = [slidingLog({ limit: 100_000, window: '1d' })]
  const limiter = open({ policies, store, deadline: '10s', onStoreError: 'throw' })
  try {
    const decision = await limiter.consume('k')
    const before = await callsOf(server, 'evalsha')
    const watch = await monitor(server)
    await expect(decision.settle(50_001)).resolves.toBe(50_000)
    const calls = (await watch.stop()).filter((line) => /"evalsha"/i.test(line) && !line.includes(' lua]'))
    expect((await callsOf(server, 'evalsha')) - before).toBe(50)
    expect(calls).toHaveLength(50)
    for (const call of calls) expect(call).toContain(`" "${THOUSAND}`)
    expect((await limiter.peek('k')).remaining).toBe(49_999)
  } finally {
    await limiter.close()
    await store.close()
    await server.stop()
  }
}, 60_000)

/** How MONITOR shows the first number of an argument, the cost, where it is 1,000. */
const THOUSAND = '\\x00\\x00\\x00\\x00\\x00@\\x8f@'
