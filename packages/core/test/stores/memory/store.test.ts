import { FakeClock } from '@sluice/testing'
import { createLimiter, fixedWindow, gcra, memoryStore, slidingLog } from '../../../src/index.js'
import { expectWarnings } from '@sluice/harness/warnings'

let clock: FakeClock
beforeEach(() => {
  clock = new FakeClock()
})
const open = (maxKeys: number, limit = 10) => {
  const store = memoryStore({ maxKeys, clock: clock.now })
  return {
    store,
    limiter: createLimiter({ name: 'test', store, policies: [slidingLog({ limit, window: '1m' })] }),
  }
}

describe('the number of keys', () => {
  it('never passes maxKeys', () => {
    expectWarnings(['STORE_FULL'])
    const { store, limiter } = open(100)
    for (let i = 0; i < 1000; i++) void limiter.decide(`k${i}`)
    expect(store.size).toBe(100)
  })

  it('is shared by all limiters of the store, and the limiter with most keys loses one first', () => {
    expectWarnings(['STORE_FULL'])
    const { store, limiter } = open(100)
    for (let i = 0; i < 100; i++) void limiter.decide(`k${i}`)
    const other = createLimiter({ name: 'other', store, policies: [gcra({ limit: 2, window: '1s' })] })
    expect(other.decide('k')).toMatchObject({ allowed: true, remaining: 1 })
    expect(store.size).toBe(100)
  })

  it('changes nothing about the keys that are held already', async () => {
    const policies = [slidingLog({ limit: 10, window: '1m' }), gcra({ limit: 10, window: '1d' })]
    const limiter = createLimiter({ policies, store: memoryStore({ clock: clock.now }), name: 'test' })
    const costs = Array.from({ length: 10_000 }, (_, i) => 1 + (i % 7))
    costs.forEach((cost, i) => void limiter.decide(`k${i}`, { cost }))
    const left = await Promise.all(costs.map(async (_, i) => (await limiter.peek(`k${i}`)).policies))
    const each = left.map((policies) => policies.map(({ remaining }) => remaining))
    expect(each).toEqual(costs.map((cost) => [10 - cost, 10 - cost]))
  })

  it('does not grow for a denied cost, a peek, or a cost of 0', async () => {
    const { store, limiter } = open(100)
    void limiter.decide('a', { cost: 11 })
    void limiter.decide('b', { cost: 0 })
    await limiter.peek('c')
    await limiter.refund('d')
    expect(store.size).toBe(0)
  })
})

describe('a full store', () => {
  it('frees keys whose allowance is full again before any other', () => {
    const { limiter } = open(100)
    for (let i = 0; i < 50; i++) void limiter.decide(`old${i}`)
    clock.pass(30_000)
    for (let i = 0; i < 50; i++) void limiter.decide(`new${i}`)
    clock.pass(30_000)
    for (let i = 0; i < 50; i++) void limiter.decide(`late${i}`)
    const kept = Array.from({ length: 50 }, (_, i) => limiter.decide(`new${i}`, { cost: 0 }))
    expect(kept).toEqual(kept.map(() => expect.objectContaining({ remaining: 9 })))
  })

  it('keeps exhausted keys when a flood of new keys comes', () => {
    expectWarnings(['STORE_FULL'])
    const { limiter } = open(100)
    for (let i = 0; i < 20; i++) void limiter.decide(`spent${i}`, { cost: 10 })
    for (let i = 0; i < 10_000; i++) void limiter.decide(`flood${i}`)
    const passed = Array.from({ length: 20 }, (_, i) => limiter.decide(`spent${i}`)).filter(
      (decision) => 'allowed' in decision && decision.allowed,
    )
    expect(passed).toHaveLength(0)
  })

  it('keeps banned keys', async () => {
    expectWarnings(['STORE_FULL'])
    const { limiter } = open(100)
    await limiter.block('banned', '1h')
    for (let i = 0; i < 10_000; i++) void limiter.decide(`flood${i}`)
    expect(limiter.decide('banned')).toMatchObject({ reason: 'blocked' })
  })

  it('still serves a new key when all others are exhausted', () => {
    expectWarnings(['STORE_FULL'])
    const { limiter } = open(100)
    for (let i = 0; i < 100; i++) void limiter.decide(`spent${i}`, { cost: 10 })
    expect(limiter.decide('fresh')).toMatchObject({ allowed: true })
  })

  it('reports each evicted key, and warns once', async () => {
    const { limiter } = open(1)
    const evicted: string[] = []
    const warnings: string[] = []
    limiter.on('evicted', ({ key }) => evicted.push(key))
    limiter.on('warning', ({ code }) => warnings.push(code))
    for (const key of ['a', 'b', 'c']) await limiter.consume(key)
    expect(evicted).toEqual(['a', 'b'])
    expect(warnings).toEqual(['STORE_FULL'])
  })

  it('lets a listener call the limiter', async () => {
    const { store, limiter } = open(1)
    limiter.on('warning', () => {})
    limiter.on('evicted', ({ key }) => void (key === 'a' && limiter.decide('c')))
    await limiter.consume('a')
    await limiter.consume('b')
    expect(store.size).toBe(1)
  })
})

describe('sweeping', () => {
  it('starts no timer before the first key, because some platforms allow none while modules are loaded', () => {
    jest.useFakeTimers()
    const { limiter } = open(10)
    void limiter.decide('k', { cost: 0 })
    expect(jest.getTimerCount()).toBe(0)
    void limiter.decide('k')
    expect(jest.getTimerCount()).toBe(1)
    jest.useRealTimers()
  })

  it('frees keys as new ones come from a quarter of maxKeys on, so that memory follows the live keys', () => {
    const { store, limiter } = open(4000)
    for (let i = 0; i < 1000; i++) void limiter.decide(`old${i}`)
    clock.pass(60_000)
    for (let i = 0; i < 1000; i++) void limiter.decide(`new${i}`)
    expect(store.size).toBe(1000)
  })

  it('frees keys in the background, without a call', async () => {
    jest.useFakeTimers()
    const { store, limiter } = open(1_000_000)
    for (let i = 0; i < 1000; i++) void limiter.decide(`old${i}`)
    clock.pass(60_000)
    await jest.advanceTimersByTimeAsync(1000)
    expect(store.size).toBe(1000) // full again for less than 5 s
    clock.pass(5000)
    await jest.advanceTimersByTimeAsync(1000)
    jest.useRealTimers()
    expect(store.size).toBe(0)
  })

  it('frees at once what is full again in the background of a store that is a quarter full', async () => {
    jest.useFakeTimers()
    const { store, limiter } = open(4000)
    for (let i = 0; i < 1000; i++) void limiter.decide(`old${i}`)
    clock.pass(60_000)
    await jest.advanceTimersByTimeAsync(1000)
    jest.useRealTimers()
    expect(store.size).toBeLessThan(1000)
  })

  it('keeps usage that still counts under a tier with a smaller limit', () => {
    const store = memoryStore({ clock: clock.now })
    const tier = (limit: number) => [gcra({ limit, window: '1h', burst: 1, name: 'tier' })]
    const limiter = createLimiter({ name: 'test', store, policies: tier(3600) })
    void limiter.decide('k', { policies: tier(1) })
    clock.pass(60_000)
    for (let i = 0; i < 10; i++) void limiter.decide(`other${i}`)
    expect(limiter.decide('k', { policies: tier(1) })).toMatchObject({ allowed: false })
  })
})

describe('the clock', () => {
  it('stands still when the clock runs back, so that no caller is locked out or set free', () => {
    const { limiter } = open(10, 1)
    void limiter.decide('k')
    clock.pass(-3_600_000)
    expect(limiter.decide('k')).toMatchObject({ allowed: false, retryAfterMs: 3_600_000 + 60_000 })
    clock.pass(3_600_000 + 60_000)
    expect(limiter.decide('k')).toMatchObject({ allowed: true })
  })

  it('of a default store does not follow a step of the wall clock', () => {
    const limiter = createLimiter({ policies: [slidingLog({ limit: 1, window: '1h' })] })
    void limiter.decide('k')
    const wall = jest.spyOn(Date, 'now').mockReturnValue(Date.now() + 2 * 3_600_000)
    expect(limiter.decide('k')).toMatchObject({ allowed: false })
    wall.mockRestore()
  })
})

describe('keyspaces', () => {
  it('keep limiters of different names apart', () => {
    const store = memoryStore({ clock: clock.now })
    const policies = [fixedWindow({ limit: 1, window: '1m' })]
    const [a, b] = ['a', 'b'].map((name) => createLimiter({ name, store, policies }))
    expect([a!.decide('k'), b!.decide('k')]).toMatchObject([{ allowed: true }, { allowed: true }])
  })

  it('are shared by limiters of the same name and shapes', () => {
    const store = memoryStore({ clock: clock.now })
    const policies = [fixedWindow({ limit: 1, window: '1m' })]
    const [a, b] = ['a', 'a'].map((name) => createLimiter({ name, store, policies }))
    expect([a!.decide('k'), b!.decide('k')]).toMatchObject([{ allowed: true }, { allowed: false }])
  })
})
