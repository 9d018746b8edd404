import { outcome } from '@sluice/harness/figures'
import { getEventListeners } from 'node:events'
import {
  createLimiter,
  type Decision,
  fixedWindow,
  gcra,
  leakyBucket,
  type Limiter,
  memoryStore,
  type Store,
} from '../../src/index.js'
import { guard } from '../../src/stores/authoring.js'

/** Timers and the clock of this file are Jest's: nothing sleeps. */
const open = (policy = gcra({ limit: 10, window: '1s', burst: 1 }), enforce = true): Limiter =>
  createLimiter({ name: 'test', policies: [policy], store: memoryStore(), enforce })

const pass = (ms: number) => jest.advanceTimersByTimeAsync(ms)

beforeEach(() => jest.useFakeTimers({ now: Date.UTC(2026, 0, 1) }))
afterEach(() => jest.useRealTimers())

describe('acquire', () => {
  it('resolves at once when the cost fits', async () => {
    expect(await open().acquire('k')).toMatchObject({ allowed: true, waitMs: 0 })
  })

  it('serves waiting calls in order, each at its turn', async () => {
    const limiter = open()
    const waits: number[] = []
    const calls = [1, 2, 3, 4].map(() => limiter.acquire('k').then(({ waitMs }) => waits.push(waitMs)))
    await pass(99)
    expect(waits).toEqual([0])
    await pass(201)
    expect(waits).toEqual([0, 100, 200, 300])
    await Promise.all(calls)
  })

  it('starts as many as fit at once and spaces the rest', async () => {
    const limiter = open(leakyBucket({ limit: 1, window: '2s', capacity: 15 }))
    const started: Decision[] = []
    for (let i = 0; i < 17; i++) void limiter.acquire('k').then((decision) => started.push(decision))
    await pass(0)
    expect(started).toHaveLength(15)
    await pass(2000)
    expect(started).toHaveLength(16)
    await pass(2000)
    expect(started).toHaveLength(17)
  })

  it('is denied at once, with nothing booked, when the turn is later than maxWait', async () => {
    const limiter = open()
    await limiter.acquire('k')
    expect(await limiter.acquire('k', { maxWait: 99 })).toMatchObject({ allowed: false, retryAfterMs: 100 })
    const second = outcome(limiter.acquire('k', { maxWait: 100 }))
    await pass(100)
    expect(second.value).toMatchObject({ allowed: true, waitMs: 100 })
  })

  it('denies consume while places ahead are booked, with nothing remaining', async () => {
    const limiter = open(gcra({ limit: 10, window: '1s', burst: 5 }))
    for (let i = 0; i < 5; i++) await limiter.consume('k')
    const waiting = outcome(limiter.acquire('k', { cost: 3 }))
    expect(await limiter.consume('k')).toMatchObject({ allowed: false, remaining: 0, retryAfterMs: 400 })
    await pass(300)
    expect(waiting.value!.allowed).toBe(true)
  })

  it('describes the place as of its turn', async () => {
    const limiter = open()
    await limiter.acquire('k')
    const second = outcome(limiter.acquire('k'))
    await pass(100)
    expect(second.value).toMatchObject({ retryAfterMs: 0, remaining: 0, resetAfterMs: 100 })
  })

  it('describes each of several policies as of its turn', async () => {
    const even = gcra({ limit: 10, window: '1s', burst: 1 })
    const limiter = createLimiter({ policies: [even, gcra({ limit: 100, window: '10s' })] })
    await limiter.acquire('k')
    const second = outcome(limiter.acquire('k'))
    await pass(100)
    expect(second.value!.policies).toMatchObject([
      { retryAfterMs: 0, remaining: 0, resetAfterMs: 100 },
      { retryAfterMs: 0, remaining: 0, resetAfterMs: 100 },
    ])
  })

  it('reports how late it resolved after its turn', async () => {
    let now = 0
    const limiter = createLimiter({
      name: 'test',
      policies: [gcra({ limit: 10, window: '1s', burst: 1 })],
      store: memoryStore({ clock: () => now }),
    })
    expect(await limiter.acquire('k')).toMatchObject({ lateMs: 0 })
    const second = outcome(limiter.acquire('k'))
    now = 130_000
    await pass(100)
    expect(second.value).toMatchObject({ waitMs: 130, lateMs: 30 })
  })

  it('resolves at once in shadow mode', async () => {
    const limiter = open(gcra({ limit: 1, window: '1m', burst: 1 }), false)
    await limiter.acquire('k')
    expect(await limiter.acquire('k', { maxWait: 0 })).toMatchObject({ allowed: true, wouldDeny: true })
  })
})

/** A store elsewhere, 60 ms away, whose clock is 5 s behind that of this process. */
function farStore(): Store {
  const clock = (): number => Date.now() * 1000
  const memory = memoryStore({ clock: () => clock() - 5_000_000 })
  const far = async <T>(act: () => T): Promise<Awaited<T>> => {
    await new Promise((arrive) => setTimeout(arrive, 60))
    const result = await act()
    await new Promise((arrive) => setTimeout(arrive, 60))
    return result
  }
  return {
    guard,
    now: clock,
    close: () => memory.close(),
    keyspace: (...terms) => {
      const state = memory.keyspace(...terms)
      return {
        policies: state.policies,
        decide: (...call) => far(() => state.decide(...call)),
        confirm: (booking) => far(() => state.confirm(booking)),
        cancel: (booking) => far(() => state.cancel(booking)),
        correct: (change) => far(() => state.correct(change)),
      }
    },
  }
}

it('never comes early after answers for which no store is asked, whose time is that of this process', async () => {
  const policies = [gcra({ limit: 5, window: '1s', burst: 1 })]
  const store = farStore()
  const limiter = createLimiter({ name: 'far', policies, store, onStoreError: 'throw', deadline: '10s' })
  const suspended = [gcra({ limit: 0, window: '1s', burst: 1 })]
  const first = outcome(limiter.acquire('k'))
  await pass(120)
  expect(first.value?.allowed).toBe(true) // at 60 ms, so the next turn is at 260 ms
  expect((await limiter.acquire('k', { policies: suspended })).allowed).toBe(false)
  const second = outcome(limiter.acquire('k'))
  await pass(139)
  expect(second.value).toBeUndefined()
  await pass(61)
  expect(second.value).toMatchObject({ allowed: true, waitMs: 200 })
})

describe('an abort', () => {
  it('is listened to once by all calls with its signal, and not after them', async () => {
    const limiter = open()
    const { signal } = new AbortController()
    const calls = Array.from({ length: 20 }, () => limiter.acquire('k', { signal }))
    await pass(0)
    expect(getEventListeners(signal, 'abort')).toHaveLength(1) // Node warns of a leak above ten
    await pass(2000)
    await Promise.all(calls)
    expect(getEventListeners(signal, 'abort')).toHaveLength(0)
  })

  it('rejects with the reason and gives the place to the next', async () => {
    const limiter = open()
    await limiter.acquire('k')
    const controller = new AbortController()
    const aborted = outcome(limiter.acquire('k', { signal: controller.signal }))
    controller.abort(new Error('gone'))
    await pass(0)
    expect(aborted.error).toEqual(new Error('gone'))
    const next = outcome(limiter.acquire('k'))
    await pass(100)
    expect(next.value!.waitMs).toBe(100)
  })

  it('gives back only its own place if another call booked after it', async () => {
    const limiter = open()
    await limiter.acquire('k')
    const controller = new AbortController()
    outcome(limiter.acquire('k', { signal: controller.signal }))
    const behind = outcome(limiter.acquire('k'))
    controller.abort()
    await pass(200)
    expect(behind.value!.waitMs).toBe(200)
  })

  it('of several calls gives all units back when the last leaves first', async () => {
    const limiter = open()
    await limiter.acquire('k')
    const controllers = [1, 2, 3].map(() => new AbortController())
    for (const { signal } of controllers) outcome(limiter.acquire('k', { signal }))
    for (const controller of controllers.toReversed()) controller.abort()
    await pass(0)
    expect((await limiter.peek('k')).retryAfterMs).toBe(100)
  })

  it('ends the wait for reserved units, also one that comes while the store is asked', async () => {
    const limiter = createLimiter({
      name: 'test',
      policies: [fixedWindow({ limit: 1, window: '1d' })],
      store: memoryStore(),
      reservations: {},
    })
    await limiter.reserve('k', { ttl: '1h' })
    await limiter.consume('spent')
    const before = jest.getTimerCount()
    for (const ms of [undefined, 0, 1500]) {
      const controller = new AbortController()
      const options = { maxWait: '1d', signal: controller.signal } as const
      const calls = [limiter.reserve('k', { ttl: '1h', ...options }), limiter.acquire('spent', options)]
      const outcomes = calls.map((call) => outcome(call))
      if (ms !== undefined) await pass(ms)
      controller.abort(new Error('gone'))
      await pass(0)
      expect(outcomes.map(({ error }) => error)).toEqual([new Error('gone'), new Error('gone')])
    }
    expect(jest.getTimerCount()).toBe(before)
  })

  it('before the call books nothing', async () => {
    const limiter = open()
    await expect(limiter.acquire('k', { signal: AbortSignal.abort(new Error('no')) })).rejects.toThrow('no')
    expect((await limiter.peek('k')).allowed).toBe(true)
  })
})

describe('a hold or a reset during the wait', () => {
  it('gives a place back and books another', async () => {
    const limiter = open(gcra({ limit: 1, window: '1s', burst: 1 }))
    await limiter.acquire('k')
    const waiting = outcome(limiter.acquire('k'))
    await limiter.hold('k', '3s')
    await pass(2999)
    expect(waiting.value).toBeUndefined()
    await pass(1)
    expect(waiting.value).toMatchObject({ allowed: true, waitMs: 3000 })
    expect((await limiter.peek('k')).retryAfterMs).toBe(1000)
  })

  it('denies the call when the hold outlasts maxWait', async () => {
    const limiter = open(gcra({ limit: 1, window: '1s', burst: 1 }))
    await limiter.acquire('k')
    const waiting = outcome(limiter.acquire('k', { maxWait: '2s' }))
    await limiter.hold('k', '3s')
    await pass(1000)
    expect(waiting.value).toMatchObject({ allowed: false, reason: 'held' })
  })

  it('makes a call whose state was reset book again', async () => {
    const limiter = open(gcra({ limit: 1, window: '1s', burst: 1 }))
    await limiter.acquire('k')
    const waiting = outcome(limiter.acquire('k'))
    await limiter.reset('k')
    await pass(900)
    await limiter.consume('k')
    await pass(100)
    expect(waiting.value).toBeUndefined()
    await pass(900)
    expect(waiting.value).toMatchObject({ allowed: true, waitMs: 1900 })
  })
})

describe('close', () => {
  it('rejects waiting and later calls', async () => {
    const limiter = open()
    await limiter.acquire('k')
    const waiting = outcome(limiter.acquire('k'))
    await limiter.close()
    expect(waiting.error).toMatchObject({ code: 'CLOSED' })
    await expect(limiter.consume('k')).rejects.toMatchObject({ name: 'StoreError', code: 'CLOSED' })
  })

  it('gives the places back in a shared store', async () => {
    const store = memoryStore()
    const policies = [gcra({ limit: 10, window: '1s', burst: 1 })]
    const [leaving, staying] = [1, 2].map(() => createLimiter({ name: 'shared', policies, store }))
    await leaving!.acquire('k')
    outcome(leaving!.acquire('k'))
    await leaving!.close()
    expect((await staying!.peek('k')).retryAfterMs).toBe(100)
  })

  it('of the store rejects waiting calls at once, and leaves no timer behind', async () => {
    const store = memoryStore()
    const policies = [gcra({ limit: 1, window: '1h', burst: 1 })]
    const limiters = [1, 2].map((n) => createLimiter({ name: `shared ${n}`, policies, store }))
    const waiting = limiters.flatMap((limiter) =>
      [1, 2, 3].map(() => outcome(limiter.acquire('k', { maxWait: '1d' }))),
    )
    await pass(0)
    await store.close()
    await pass(0)
    const errors = waiting.map(({ error, value }) => error ?? value?.allowed)
    const closed = { name: 'StoreError', code: 'CLOSED', message: 'the store is closed' }
    expect(errors).toMatchObject([true, closed, closed, true, closed, closed])
    expect([limiters.map(({ waiting: calls }) => calls), jest.getTimerCount()]).toEqual([[0, 0], 0])
    await expect(limiters[0]!.acquire('k')).rejects.toMatchObject({ code: 'CLOSED' })
  })

  it('leaves no timer behind', async () => {
    const limiter = createLimiter({ policies: [gcra({ limit: 10, window: '1s', burst: 1 })] })
    await limiter.acquire('k')
    outcome(limiter.acquire('k'))
    await limiter.close()
    expect(jest.getTimerCount()).toBe(0)
  })
})
