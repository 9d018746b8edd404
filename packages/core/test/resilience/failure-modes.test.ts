import { FakeClock } from '@sluice/testing'
import {
  createLimiter,
  type Decision,
  gcra,
  InputError,
  type Limiter,
  type LimiterOptions,
  memoryStore,
  slidingLog,
} from '../../src/index.js'
import { RemoteStore } from '@sluice/harness/stores'
import { expectWarnings } from '@sluice/harness/warnings'

const policies = [slidingLog({ limit: 10, window: '10s' })]

let clock: FakeClock
let store: RemoteStore
beforeEach(() => {
  clock = new FakeClock()
  store = new RemoteStore(clock.now)
})

const open = (options: Partial<LimiterOptions> = {}) =>
  createLimiter({ name: 'api', policies, store, ...options })

async function admitted(limiter: Limiter, calls: number): Promise<number> {
  const decisions = await Promise.all(Array.from({ length: calls }, () => limiter.consume('k')))
  return decisions.filter(({ allowed }) => allowed).length
}

describe("a store that fails, with onStoreError 'local'", () => {
  beforeEach(() => store.fail('STORE_OOM'))

  it('enforces the same limits in this process by default, and decisions report why', async () => {
    const limiter = open()
    expect(await limiter.consume('k')).toMatchObject({ allowed: true, remaining: 9, degraded: 'oom' })
    expect(await admitted(limiter, 20)).toBe(9)
    const denied = await limiter.consume('k')
    expect(denied).toMatchObject({ allowed: false, reason: 'limit', degraded: 'oom', retryAfterMs: 10_000 })
    clock.pass(10_000)
    expect(await limiter.consume('k')).toMatchObject({ allowed: true })
  })

  it('divides limits by the number of processes that share them', async () => {
    expect(await admitted(open({ onStoreError: { mode: 'local', share: 4 } }), 20)).toBe(2)
  })

  it('says what was used here, of a share of the limits too', async () => {
    const limiter = open({ onStoreError: { mode: 'local', share: 4 } })
    const used: (number | undefined)[] = []
    for (const cost of [1, 1, 1, 3, 11]) used.push((await limiter.consume('k', { cost })).policies[0]!.used)
    expect(used).toEqual([1, 2, 2, 2, 2])
  })

  it('leaves each process at least one unit', async () => {
    expect(await admitted(open({ onStoreError: { mode: 'local', share: 100 } }), 20)).toBe(1)
  })

  it('denies a cost above the share alone without reporting that it never fits', async () => {
    const limiter = open({ onStoreError: { mode: 'local', share: 4 } })
    expect(await limiter.consume('k', { cost: 3 })).toMatchObject({ reason: 'degraded', retryAfterMs: 1000 })
    expect(await limiter.consume('k', { cost: 11 })).toMatchObject({ reason: 'cost', retryAfterMs: Infinity })
  })

  it('shares its local state among the limiters that share the state in the store', async () => {
    expect(await admitted(open(), 6)).toBe(6)
    expect(await admitted(open(), 6)).toBe(4)
    expect(await admitted(open({ name: 'web' }), 6)).toBe(6)
  })

  it('settles a local decision in the local state', async () => {
    const limiter = open()
    await (await limiter.consume('k', { cost: 8 })).settle(2)
    expect((await limiter.peek('k')).remaining).toBe(8)
    expect(store.count('refund')).toBe(0)
  })

  it('settles a local decision in the local state even when the store is back', async () => {
    const decision = await open().consume('k', { cost: 8 })
    store.recover()
    await decision.settle(2)
    expect(store.count('refund')).toBe(0)
  })

  it('books places in this process, and gives them back', async () => {
    const limiter = open({ policies: [gcra({ limit: 10, window: '1s', burst: 1 })] })
    expect(await limiter.acquire('k')).toMatchObject({ allowed: true, degraded: 'oom' })
    const abort = new AbortController()
    const waiting = limiter.acquire('k', { signal: abort.signal }).catch((error: unknown) => error)
    await new Promise((resolve) => setImmediate(resolve))
    expect((await limiter.peek('k')).retryAfterMs).toBe(200)
    abort.abort('enough')
    expect(await waiting).toBe('enough')
    expect((await limiter.peek('k')).retryAfterMs).toBe(100)
    expect(store.count('cancel')).toBe(0)
    expect(await limiter.acquire('k', { maxWait: '50ms' })).toMatchObject({ allowed: false, reason: 'limit' })
  })

  it.each([
    ['block', 'blocked'],
    ['hold', 'held'],
  ] as const)('rejects a %s, which this process keeps to all the same', async (bar, reason) => {
    const limiter = open()
    await expect(limiter[bar]('k', '1m')).rejects.toMatchObject({ code: 'STORE_OOM' })
    expect(await limiter.consume('k')).toMatchObject({ allowed: false, reason, degraded: 'oom' })
    await expect(limiter.reset('k')).rejects.toMatchObject({ code: 'STORE_OOM' })
    expect(await limiter.consume('k')).toMatchObject({ allowed: true, degraded: 'oom' })
  })

  it('enforces a block that was set before the outage', async () => {
    store.recover()
    const limiter = open()
    await limiter.block('k', '1m')
    store.fail('STORE_UNAVAILABLE')
    expect(await limiter.consume('k')).toMatchObject({ reason: 'blocked', degraded: 'unavailable' })
  })

  it('rejects a refund', async () => {
    await expect(open().refund('k')).rejects.toMatchObject({ code: 'STORE_OOM' })
  })

  it('allows every call in shadow mode, and reports what it would have decided', async () => {
    const limiter = open({ enforce: false })
    expect(await admitted(limiter, 20)).toBe(20)
    expect(await limiter.consume('k')).toMatchObject({ wouldDeny: true, reason: 'limit', degraded: 'oom' })
  })
})

describe('a store that fails', () => {
  beforeEach(() => store.fail('STORE_OOM'))

  it('allows calls under onStoreError allow, and reports why', async () => {
    const limiter = open({ onStoreError: 'allow' })
    const policies = [{ used: 0 }]
    const expected = { allowed: true, degraded: 'oom', reason: undefined, retryAfterMs: 0, policies }
    expect(await limiter.consume('k')).toMatchObject(expected)
    expect(await limiter.peek('k')).toMatchObject(expected)
    expect(await limiter.acquire('k')).toMatchObject(expected)
  })

  it('denies calls under onStoreError deny, with a reason that is not the limit', async () => {
    const limiter = open({ onStoreError: 'deny' })
    const policies = [{ remaining: 0, used: 0 }]
    const expected = { allowed: false, degraded: 'oom', reason: 'degraded', retryAfterMs: 1000, policies }
    expect(await limiter.consume('k')).toMatchObject(expected)
    expect(await limiter.acquire('k', { maxWait: 0 })).toMatchObject(expected)
  })

  it('rejects calls under onStoreError throw', async () => {
    const limiter = open({ onStoreError: 'throw' })
    await expect(limiter.consume('k')).rejects.toMatchObject({ code: 'STORE_OOM' })
    await expect(limiter.acquire('k', { maxWait: 0 })).rejects.toMatchObject({ code: 'STORE_OOM' })
  })

  it('denies nothing in shadow mode', async () => {
    const limiter = open({ onStoreError: 'deny', enforce: false })
    expect(await limiter.consume('k')).toMatchObject({ allowed: true, wouldDeny: true, degraded: 'oom' })
  })

  it.each(['allow', 'deny'] as const)("leaves nothing to settle after '%s'", async (onStoreError) => {
    const decision = await open({ onStoreError }).consume('k')
    await expect(decision.settle(5)).resolves.toBe(0)
    expect(store.arrived).toEqual(['consume'])
  })

  it('is not replaced after it was closed', async () => {
    const limiter = open()
    store.close()
    await expect(limiter.consume('k')).rejects.toMatchObject({ code: 'CLOSED' })
  })

  it('is not replaced if the call itself is invalid', async () => {
    store.fail(new InputError('INVALID_COST', 'too much for a log'))
    await expect(open().consume('k')).rejects.toMatchObject({ code: 'INVALID_COST' })
  })
})

it.each([
  { onStoreError: 'ignore' },
  { onStoreError: null },
  { onStoreError: { mode: 'allow' } },
  { onStoreError: { mode: 'local', share: 0 } },
  { onStoreError: { mode: 'local', share: 1.5 } },
  { deadline: '2m' },
  { deadline: 0 },
])('refuses %p', (options) => {
  expect(() => open({ store: memoryStore(), ...(options as Partial<LimiterOptions>) })).toThrow(
    expect.objectContaining({ name: 'PolicyError' }),
  )
})

describe('a store that fails and recovers', () => {
  beforeEach(() => jest.useFakeTimers({ doNotFake: ['queueMicrotask'] }))
  afterEach(() => jest.useRealTimers())

  it('is reported once, and so is its recovery after a while', async () => {
    store.endpoint = 'h:1'
    expectWarnings(['STORE_DEGRADED', 'STORE_RECOVERED'])
    const limiter = open()
    const told: unknown[] = []
    limiter.on('degraded', (event) => told.push({ degraded: event }))
    limiter.on('recovered', (event) => told.push({ recovered: event }))
    const decide = async (calls: number): Promise<Decision> => {
      for (let i = 1; i < calls; i++) await limiter.consume('k', { cost: 0 })
      return limiter.consume('k', { cost: 0 })
    }
    expect((await decide(1)).degraded).toBeUndefined()
    store.fail('STORE_OOM')
    await decide(3)
    store.fail('STORE_READONLY')
    expect((await decide(2)).degraded).toBe('readonly')
    for (let i = 0; i < 3; i++) {
      store.recover()
      expect((await decide(1)).degraded).toBeUndefined()
      store.fail('STORE_OOM')
      await decide(1)
    }
    store.recover()
    await decide(2)
    const outage = {
      limiter: 'api',
      reason: 'oom',
      cause: 'STORE_OOM',
      message: 'as the test says',
      endpoint: 'h:1',
    }
    expect(told).toEqual([{ degraded: { type: 'degraded', ...outage } }])
    jest.advanceTimersByTime(100)
    await decide(2)
    expect(told.slice(1)).toEqual([{ recovered: { type: 'recovered', ...outage, decisions: 8 } }])
  })
})
