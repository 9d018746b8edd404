import {
  createLimiter,
  createSemaphore,
  type DecisionEvent,
  gcra,
  type Limiter,
  type LimiterOptions,
  memoryStore,
  slidingLog,
} from '../../src/index.js'
import { counting } from '../../src/internal.js'
import type { Report, Store } from '../../src/stores/authoring.js'
import { FakeClock } from '@sluice/testing'
import { RemoteStore } from '@sluice/harness/stores'
import { expectWarnings } from '@sluice/harness/warnings'

const policies = [slidingLog({ limit: 100, window: '10s' })]
const limiters: Limiter[] = []

/** A limiter with the records of its decisions. */
function open(options: Partial<LimiterOptions>) {
  const limiter = createLimiter({ name: 'api', policies, ...options })
  const events: DecisionEvent[] = []
  limiter.on('decision', (event) => void events.push(event))
  limiters.push(limiter)
  return { limiter, events, by: () => events.map(({ decidedBy }) => decidedBy) }
}

let clock: FakeClock
let store: RemoteStore
beforeEach(() => {
  clock = new FakeClock()
  store = new RemoteStore(clock.now, { maxAge: 1_000_000, maxKeys: 100 })
})
afterEach(() => Promise.all(limiters.splice(0).map((limiter) => limiter.close())))

describe("the 'decision' event", () => {
  it('says who asked whom for what, and who decided', async () => {
    const { limiter, events } = open({ store: memoryStore({ clock: clock.now }) })
    const consumed = await limiter.consume('a', { cost: 3 })
    const decided = await limiter.decide('b')
    const acquired = await limiter.acquire('c', { cost: 2 })
    expect(events).toEqual([
      record('a', 'consume', 3, consumed),
      record('b', 'consume', 1, decided),
      record('c', 'acquire', 2, acquired),
    ])

    function record(key: string, operation: string, cost: number, decision: unknown) {
      return {
        type: 'decision',
        limiter: 'api',
        key,
        operation,
        cost,
        charged: true,
        together: 1,
        decision,
        decidedBy: 'memory',
        storeMs: 0,
      }
    }
  })

  it("names 'none' under a limit of 0, which asks no store", async () => {
    const { limiter, events } = open({ store, policies: [slidingLog({ limit: 0, window: '1m' })] })
    await limiter.consume('k')
    expect(events).toMatchObject([{ decidedBy: 'none', storeMs: 0, decision: { reason: 'limit' } }])
    expect(store.arrived).toEqual([])
  })

  it('is no report of peeks and corrections', async () => {
    const { limiter, events } = open({})
    await limiter.peek('k')
    await limiter.charge('k')
    await limiter.refund('k')
    expect(events).toEqual([])
  })

  it("tells the store's decisions from the cache of denials", async () => {
    const { limiter, events, by } = open({ store })
    await limiter.consume('k', { cost: 100 })
    await limiter.consume('k')
    await limiter.consume('k')
    expect(by()).toEqual(['store', 'store', 'cache'])
    expect(events[0]!.storeMs).toBeGreaterThan(0)
    expect(events[2]!.storeMs).toBe(0)
  })

  it('tells decisions from a lease', async () => {
    const { limiter, by } = open({ store, leases: { ttl: '1s', size: 50 } })
    for (let i = 0; i < 12; i++) await limiter.consume('k')
    const known = by()
    expect(known.slice(0, 2)).toEqual(['store', 'store'])
    expect(known).toContain('lease')
  })

  it.each([
    ['local', 'local', true],
    ['allow', 'none', true],
    ['deny', 'none', false],
  ] as const)("under onStoreError '%s' names '%s'", async (onStoreError, decidedBy, allowed) => {
    const { limiter, events } = open({ store, onStoreError })
    store.fail('STORE_OOM')
    await limiter.consume('k')
    await limiter.acquire('k', { maxWait: 0 })
    expect(events).toMatchObject([
      { operation: 'consume', decidedBy, decision: { allowed, degraded: 'oom' } },
      { operation: 'acquire', decidedBy, decision: { allowed, degraded: 'oom' } },
    ])
  })
})

describe('a passive listener of warnings', () => {
  it('gets them while the process is warned too', () => {
    const warned = expectWarnings(['FIRST'])
    const { limiter } = open({})
    const codes: string[] = []
    limiter.on('warning', ({ code }) => void codes.push(code), { passive: true })
    limiter.warn('FIRST', 'thing')
    limiter.on('warning', () => {})
    limiter.warn('SECOND', 'thing')
    expect(codes).toEqual(['FIRST', 'SECOND'])
    expect(warned).toEqual([{ code: 'FIRST', message: "limiter 'api': thing" }])
  })
})

describe('the events of a semaphore', () => {
  beforeEach(() => jest.useFakeTimers({ now: Date.UTC(2026, 0, 1) }))
  afterEach(() => jest.useRealTimers())

  it('report permits that are granted, waited for, denied and released', async () => {
    const semaphore = createSemaphore({ name: 'db', limit: 1 })
    const events: object[] = []
    for (const type of ['granted', 'waited', 'denied', 'released', 'lost'] as const) {
      semaphore.on(type, (event: object) => void events.push(event))
    }
    const first = await semaphore.acquire('k')
    const second = semaphore.acquire('k')
    const third = semaphore.acquire('k', { maxWait: 10 })
    expect(semaphore).toMatchObject({ inUse: 1, waiting: 2, isClosed: false })
    await jest.advanceTimersByTimeAsync(40)
    await third
    await first.release()
    await (await second).release()
    await first.release()
    const of = { semaphore: 'db', key: 'k' }
    const by = { decidedBy: 'memory', storeMs: 0 }
    expect(events).toEqual([
      { type: 'granted', ...of, ...by, waitMs: 0 },
      { type: 'denied', ...of, ...by, waitMs: 10 },
      { type: 'released', ...of, heldMs: 40 },
      { type: 'waited', ...of, ...by, waitMs: 40 },
      { type: 'granted', ...of, ...by, waitMs: 40 },
      { type: 'released', ...of, heldMs: 0 },
    ])
    expect(semaphore).toMatchObject({ inUse: 0, waiting: 0 })
    await semaphore.close()
    expect(semaphore.isClosed).toBe(true)
  })
})

it('names its type and its limiter in every event', async () => {
  const memory = memoryStore()
  let report: Report | undefined
  const store: Store = {
    local: true,
    keyspace: (name, policies, given) => memory.keyspace(name, policies, (report = given)),
    now: () => memory.now(),
    close: () => memory.close(),
  }
  const limiter = createLimiter({ name: 'api', policies: [gcra({ limit: 1, window: '1s' })], store })
  const seen: object[] = []
  const types = ['decision', 'degraded', 'recovered', 'warning', 'evicted', 'healed'] as const
  for (const type of types) limiter.on(type, (event) => seen.push(event))
  void limiter.decide('k')
  const outage = { reason: 'timeout', cause: 'ETIMEDOUT', message: 'late', endpoint: undefined } as const
  report!({ event: 'degraded', ...outage })
  report!({ event: 'recovered', decisions: 3, ...outage })
  report!({ event: 'warning', code: 'STORE_FULL', message: 'full' })
  report!({ event: 'evicted', key: 'k' })
  report!({ event: 'healed', key: 'k' })
  await Promise.resolve()
  expect(seen).toMatchObject(types.map((type) => ({ type, limiter: 'api' })))
})

it('hands counters the parts of a decision, with an event only where another listener wants one', async () => {
  const limiter = createLimiter({ name: 'api', policies })
  const counted: unknown[][] = []
  const events: DecisionEvent[] = []
  const end = limiter.on(
    'decision',
    counting((decision, ...parts) => {
      counted.push([decision.key, ...parts])
      if (decision.key === 'b') void limiter.decide('within b')
    }),
  )
  for (const key of ['a', 'b']) await limiter.consume(key)
  limiter.on('decision', (event) => events.push(event))
  await limiter.consume('c')
  end()
  await limiter.consume('d')
  expect(counted).toEqual(['a', 'b', 'within b', 'c'].map((key) => [key, 'consume', 'memory', 0, 1]))
  expect(events.map(({ key, decision }) => [key, decision.key])).toEqual([
    ['c', 'c'],
    ['d', 'd'],
  ])
})

it('warns of a counter that throws, and calls the others', () => {
  const limiter = createLimiter({ name: 'api', policies })
  const [warnings, counted]: string[][] = [[], []]
  limiter.on('warning', ({ code }) => warnings!.push(code))
  limiter.on(
    'decision',
    counting(() => {
      throw new Error('broken')
    }),
  )
  limiter.on(
    'decision',
    counting(({ key }) => counted!.push(key)),
  )
  void limiter.decide('a')
  expect([warnings, counted]).toEqual([['LISTENER_FAILED'], ['a']])
})
