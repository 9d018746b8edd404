import { createLimiter, gcra, type Limiter, type LimiterOptions } from '../../src/index.js'
import { RemoteStore } from '@sluice/harness/stores'

const policies = [gcra({ limit: 1000, window: '1s' })]

let store: RemoteStore
let limiter: Limiter
beforeEach(() => {
  jest.useFakeTimers()
  store = new RemoteStore(() => performance.now() * 1000)
  limiter = open()
})
afterEach(() => jest.useRealTimers())

const open = (options: Partial<LimiterOptions> = {}) =>
  createLimiter({ name: 'api', policies, store, ...options })

/** Calls every 10 ms for `ms`, and what degraded each: undefined where the store decided. */
async function traffic(ms: number): Promise<(string | undefined)[]> {
  const told: (string | undefined)[] = []
  for (let passed = 0; passed < ms; passed += 10) {
    void limiter.consume('k').then(({ degraded }) => told.push(degraded))
    await jest.advanceTimersByTimeAsync(10)
  }
  return told
}

describe('a store that does not answer', () => {
  beforeEach(() => store.stop())

  it('is waited for until the deadline and no longer', async () => {
    const patient = open({ deadline: '80ms' })
    let degraded: string | undefined
    void patient.consume('k').then((decision) => (degraded = decision.degraded))
    await jest.advanceTimersByTimeAsync(79)
    expect(degraded).toBeUndefined()
    await jest.advanceTimersByTimeAsync(1)
    expect(degraded).toBe('timeout')
  })

  it('is no longer waited for once its failures have lasted', async () => {
    await traffic(200)
    expect(limiter.decide('k')).toMatchObject({ allowed: true, degraded: 'timeout' })
    expect(limiter.decide('another')).toMatchObject({ allowed: true, degraded: 'timeout' })
    expect(open({ name: 'web', onStoreError: 'deny' }).decide('k')).toMatchObject({ degraded: 'timeout' })
  })

  it('is probed with reads, which charge nothing when it recovers, at most every 50 ms', async () => {
    await traffic(200)
    const charges = store.count('consume')
    await traffic(1000)
    expect(store.count('consume')).toBe(charges)
    expect(store.count('peek')).toBeGreaterThanOrEqual(9)
    expect(store.count('peek')).toBeLessThanOrEqual(20)
  })

  it('decides again 100 ms after it is back', async () => {
    await traffic(2000)
    store.recover()
    const told = await traffic(200)
    expect(told[0]).toBe('timeout')
    expect(told.slice(11)).toEqual(Array(9).fill(undefined))
  })

  it('does not count as recovered while it answers too late', async () => {
    await traffic(200)
    const charges = store.count('consume')
    for (let i = 0; i < 10; i++) {
      await traffic(100)
      await jest.advanceTimersByTimeAsync(50)
      store.recover()
      await jest.advanceTimersByTimeAsync(0)
      store.stop()
    }
    expect(store.count('consume')).toBe(charges)
  })

  it('rejects corrections at the deadline, and later at once', async () => {
    const refused = limiter.refund('k').catch((error: unknown) => error)
    await jest.advanceTimersByTimeAsync(50)
    expect(await refused).toMatchObject({ code: 'STORE_TIMEOUT' })
    await traffic(200)
    const cause = expect.objectContaining({ code: 'STORE_TIMEOUT' })
    await expect(limiter.refund('k')).rejects.toMatchObject({ code: 'STORE_TIMEOUT', cause })
    const strict = open({ onStoreError: 'throw' })
    await expect(strict.consume('k')).rejects.toMatchObject({ code: 'STORE_TIMEOUT', cause })
  })

  it('gets at most 1,000 calls: 9,000 wait until their deadline, and others are decided at once', async () => {
    const decisions = Array.from({ length: 10_500 }, (_, i) => limiter.decide(`k${i}`))
    const atOnce = decisions.filter((decision) => 'allowed' in decision)
    expect(atOnce).toHaveLength(500)
    expect(atOnce[0]).toMatchObject({ allowed: true, degraded: 'overloaded' })
    expect(store.arrived).toHaveLength(1000)
    await jest.advanceTimersByTimeAsync(50)
    const told = await Promise.all(decisions.map(async (decision) => (await decision).degraded))
    expect(new Set(told)).toEqual(new Set(['timeout', 'overloaded']))
    store.recover()
    await jest.advanceTimersByTimeAsync(0)
    expect(store.arrived).toHaveLength(1000)
    expect(limiter.decide('k')).toBeInstanceOf(Promise)
  })

  it('does not count as silent because of calls that were dropped before they were sent', async () => {
    const patient = open({ name: 'patient', deadline: '10s' })
    for (let i = 0; i < 1000; i++) void patient.consume(`k${i}`)
    const refused = limiter.refund('k').catch((error: unknown) => error)
    expect(new Set(await traffic(500))).toEqual(new Set(['timeout']))
    expect(await refused).toMatchObject({ code: 'STORE_TIMEOUT', sent: false })
    expect(limiter.decide('k')).toBeInstanceOf(Promise)
    expect(store.arrived).toHaveLength(1000)
    store.recover()
    await jest.advanceTimersByTimeAsync(0)
    expect(store.count('refund')).toBe(0)
    expect(await limiter.consume('k')).toMatchObject({ degraded: undefined })
  })

  it('counts as silent while more calls wait than may be sent', async () => {
    for (let i = 0; i < 2000; i++) void limiter.consume(`k${i}`)
    await traffic(200)
    expect(limiter.decide('k')).toMatchObject({ degraded: 'timeout' })
  })

  it('leaves no timer but the sweeper of the keys that were counted locally', async () => {
    const before = jest.getTimerCount()
    await traffic(1000)
    await jest.advanceTimersByTimeAsync(50)
    expect(jest.getTimerCount()).toBe(before + 1)
  })

  it('is not replaced after it was closed', async () => {
    await traffic(200)
    store.close()
    expect(() => limiter.decide('k')).toThrow(expect.objectContaining({ code: 'CLOSED' }))
    await jest.advanceTimersByTimeAsync(60_000)
  })
})

describe('a store that answers', () => {
  it('decides a burst of more calls than may be in flight', async () => {
    const limited = open({ name: 'burst', policies: [gcra({ limit: 100, window: '1h' })] })
    const decisions = await Promise.all(Array.from({ length: 9000 }, () => limited.consume('k')))
    expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(100)
    expect(decisions.filter(({ degraded }) => degraded)).toEqual([])
  })
})

describe('a store that answers with errors', () => {
  it('is still asked, because it may answer the next call', async () => {
    store.fail('STORE_OOM')
    expect(new Set(await traffic(500))).toEqual(new Set(['oom']))
    expect(store.count('consume')).toBe(50)
  })

  it('is not asked for a while if its errors concern every call', async () => {
    store.fail('STORE_BUSY')
    expect(new Set(await traffic(500))).toEqual(new Set(['busy']))
    expect(store.count('consume')).toBeLessThan(15)
  })
})

describe('a limiter that is closed', () => {
  it('rejects waiting calls even if the store cannot take their places back', async () => {
    await limiter.consume('k', { cost: 1000 })
    const waiting = limiter.acquire('k', { cost: 500 }).catch((error: unknown) => error)
    await jest.advanceTimersByTimeAsync(0)
    store.stop()
    const closed = limiter.close()
    await jest.advanceTimersByTimeAsync(50)
    await closed
    expect(await waiting).toMatchObject({ code: 'CLOSED' })
  })

  it('rejects a call that is about to wait', async () => {
    await limiter.consume('k', { cost: 1000 })
    store.holdReplies()
    const booking = limiter.acquire('k', { cost: 500 }).catch((error: unknown) => error)
    const closed = limiter.close()
    store.recover()
    await closed
    expect(await booking).toMatchObject({ code: 'CLOSED' })
    expect(store.count('cancel')).toBe(1)
  })
})
