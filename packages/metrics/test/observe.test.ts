import {
  consumeAll,
  createLimiter,
  createSemaphore,
  fixedWindow,
  gcra,
  type Limiter,
  type LimiterOptions,
  memoryStore,
  slidingLog,
} from '@sluice/core'
import { createQueue, limitFetch } from '@sluice/outbound'
import { createNoopMeter, metrics } from '@opentelemetry/api'
import * as promClient from 'prom-client'
import { INSTRUMENTS, observe, type ObserveOptions } from '../src/index.js'
import { LaterStore } from './later-store.js'
import { type Reader, READERS, sum } from './readers.js'
import { expectWarnings } from '@sluice/harness/warnings'

const clock = () => 0
const raise = (what: string): never => {
  throw new Error(what)
}
const closing: { close(): unknown }[] = []
afterEach(async () => {
  for (const each of closing.splice(0)) await each.close()
})

describe.each(READERS)('with %s', (_, openReader) => {
  let reader: Reader
  beforeEach(() => {
    reader = openReader()
    closing.push(reader)
  })

  const open = (options: Partial<LimiterOptions>, more: Partial<ObserveOptions> = {}): Limiter => {
    const policies = [slidingLog({ limit: 10, window: '10s' })]
    const limiter = createLimiter({ name: 'api', policies, store: memoryStore({ clock }), ...options })
    closing.push(limiter)
    observe(limiter, { ...reader.options, ...more })
    return limiter
  }

  it('counts each call once, whatever its attributes, and no peek', async () => {
    const limiter = open({})
    for (let i = 0; i < 25; i++) await limiter.consume('a')
    await limiter.consume('b', { cost: 11 })
    await limiter.block('c', '1m')
    await limiter.consume('c')
    await limiter.acquire('d')
    for (let i = 0; i < 5; i++) await limiter.peek('a')
    await limiter.charge('a')
    const series = await reader.read('decisions')
    const of = { limiter: 'api', policy: '10-per-10s', decided_by: 'memory' }
    expect(series).toHaveLength(4)
    expect(series).toEqual(
      expect.arrayContaining([
        { attributes: { ...of, result: 'allowed', reason: 'none' }, value: 11 },
        { attributes: { ...of, result: 'denied', reason: 'limit' }, value: 15 },
        { attributes: { ...of, result: 'denied', reason: 'cost' }, value: 1 },
        { attributes: { ...of, result: 'denied', reason: 'blocked' }, value: 1 },
      ]),
    )
    expect(sum(await reader.read('decisions'))).toBe(28) // reading changes nothing
    expect(await reader.read('acquireDuration')).toEqual([
      { attributes: { kind: 'limiter', name: 'api', result: 'allowed' }, value: 1 },
    ])
  })

  it('counts of several keys those that deny, or those that are charged', async () => {
    const store = memoryStore({ clock })
    const wide = open({ name: 'wide', store }, { tag: (key) => key })
    const narrow = open({ name: 'narrow', store, policies: [slidingLog({ limit: 1, window: '10s' })] })
    const shadow = open({ name: 'shadow', store, policies: narrow.policies, enforce: false })
    const parts = [wide, narrow, shadow].map((limiter) => ({ limiter, key: 'k' }))
    for (let i = 0; i < 3; i++) await consumeAll(parts)
    await consumeAll(parts.map((part) => ({ ...part, cost: 0 })))
    const counts = (await reader.read('decisions')).map(({ attributes, value }) => {
      return `${String(attributes['limiter'])} ${String(attributes['result'])} ${value}`
    })
    const denied = ['narrow denied 2', 'shadow would_deny 2']
    expect(counts.toSorted()).toEqual(
      [...denied, 'narrow allowed 1', 'shadow allowed 1', 'wide allowed 1'].toSorted(),
    )
    expect(sum(await reader.read('evaluations'), { limiter: 'wide' })).toBe(1)
    expect(sum(await reader.read('tags'))).toBe(1)
  })

  it('counts a call on several keys that an outage lets pass', async () => {
    const store = new LaterStore(clock)
    store.isFailing = true
    const limiters = ['one', 'other'].map((name) => open({ name, store, onStoreError: 'allow' }))
    await consumeAll(limiters.map((limiter) => ({ limiter, key: 'k' })))
    const of = { policy: '10-per-10s', result: 'allowed', reason: 'none', decided_by: 'none' }
    const series = await reader.read('decisions')
    expect(series.map(({ attributes, value }) => [attributes, value])).toEqual([
      [{ ...of, limiter: 'one' }, 1],
      [{ ...of, limiter: 'other' }, 1],
    ])
  })

  it('counts what each policy of several said by itself', async () => {
    const minute = fixedWindow({ limit: 2, window: '1m', name: 'minute' })
    const limiter = open({ policies: [minute, fixedWindow({ limit: 4, window: '1h', name: 'hour' })] })
    for (let i = 0; i < 3; i++) await limiter.consume('a')
    const evaluations = await reader.read('evaluations')
    expect(sum(evaluations, { policy: 'minute', result: 'allowed' })).toBe(2)
    expect(sum(evaluations, { policy: 'minute', result: 'denied' })).toBe(1)
    expect(sum(evaluations, { policy: 'hour', result: 'allowed' })).toBe(3)
    expect(sum(evaluations, { policy: 'hour', result: 'denied' })).toBe(0)
    expect(sum(await reader.read('decisions'), { policy: 'minute' })).toBe(3)
    const utilization = await reader.read('utilization')
    expect(sum(utilization, { policy: 'minute', bucket: '0.5' })).toBe(1)
    expect(sum(utilization, { policy: 'minute', bucket: '1' })).toBe(2)
    expect(sum(utilization, { policy: 'hour', bucket: '0.25' })).toBe(1)
    expect(sum(utilization, { policy: 'hour', bucket: '0.5' })).toBe(2)
  })

  it('reports limits and windows before the first call, and those of tiers after theirs', async () => {
    const limiter = open({ policies: [gcra({ limit: 100, window: '1m' })] })
    const of = { limiter: 'api', policy: '100-per-1m' }
    expect(await reader.read('limit')).toEqual([{ attributes: of, value: 100 }])
    expect(await reader.read('window')).toEqual([{ attributes: of, value: 60 }])
    await limiter.consume('k', { policies: [gcra({ limit: 500, window: '1m' })] })
    expect(sum(await reader.read('limit'), { policy: '500-per-1m' })).toBe(500)
  })

  it('reports the limit of the tier that decided last, where tiers have one name', async () => {
    const [free, pro] = [10, 100].map((limit) => [gcra({ name: 'tier', limit, window: '1m' })])
    const limiter = open({ policies: free! })
    const limits = []
    for (const policies of [free, pro, free]) {
      await limiter.consume('k', { policies: policies! })
      limits.push(...(await reader.read('limit')).map(({ value }) => value))
    }
    expect(limits).toEqual([10, 100, 10])
  })

  it('tells who decided and whether the store does', async () => {
    const store = new LaterStore(clock)
    const limiter = open({ store })
    for (let i = 0; i < 12; i++) await limiter.consume('a')
    expect(await reader.read('storeAvailable')).toEqual([{ attributes: { limiter: 'api' }, value: 1 }])
    store.isFailing = true
    for (let i = 0; i < 3; i++) await limiter.consume('b')
    await Promise.resolve()
    const decisions = await reader.read('decisions')
    expect(sum(decisions, { decided_by: 'store' })).toBe(11)
    expect(sum(decisions, { decided_by: 'cache', result: 'denied' })).toBe(1)
    expect(sum(decisions, { decided_by: 'local' })).toBe(3)
    expect(await reader.read('storeAvailable')).toEqual([{ attributes: { limiter: 'api' }, value: 0 }])
    const asked = sum(await reader.read('storeDuration'))
    expect(asked).toBeGreaterThanOrEqual(11)
    expect(asked).toBeLessThanOrEqual(14)
  })

  it('counts what shadow mode would deny', async () => {
    const limiter = open({ enforce: false, policies: [fixedWindow({ limit: 1, window: '1m' })] })
    for (let i = 0; i < 3; i++) await limiter.consume('k')
    const decisions = await reader.read('decisions')
    expect(sum(decisions, { result: 'allowed' })).toBe(1)
    expect(sum(decisions, { result: 'would_deny', reason: 'limit' })).toBe(2)
  })

  it('counts by tag at most 100 values, then others', async () => {
    const limiter = open({}, { tag: (key) => `tier ${key}` })
    for (let i = 0; i < 150; i++) await limiter.consume(String(i))
    const tags = await reader.read('tags')
    expect(tags).toHaveLength(101)
    expect(sum(tags, { tag: 'other' })).toBe(50)
    expect(sum(tags)).toBe(150)
  })

  it.each<[string, () => unknown]>([
    ['a promise', () => Promise.reject(new Error('no tier'))],
    ['undefined', () => undefined],
    ['no tier', () => raise('no tier')],
  ])('warns once of a tag that is no string: %s', async (what, tag) => {
    const limiter = open({}, { tag: tag as never })
    const warnings: { code: string; message: string }[] = []
    limiter.on('warning', (warning) => void warnings.push(warning))
    for (let i = 0; i < 3; i++) await limiter.consume('k')
    await new Promise((resolve) => setImmediate(resolve)) // a rejection that nothing handles fails this test
    expect(warnings).toMatchObject([{ code: 'INVALID_TAG', message: expect.stringContaining(what) }])
    expect(sum(await reader.read('tags'), { tag: 'other' })).toBe(3)
  })

  it("counts tags that are named 'other' with the others", async () => {
    const limiter = open({}, { tag: (key) => key })
    await limiter.consume('other')
    for (let i = 0; i < 150; i++) await limiter.consume(`tier ${i}`)
    const tags = await reader.read('tags')
    expect(tags.filter(({ attributes }) => attributes['tag'] === 'other')).toHaveLength(1)
    expect(sum(tags)).toBe(151)
  })

  it('counts tags of malformed Unicode with the others', async () => {
    const limiter = open({}, { tag: (key) => key })
    for (const key of ['\ud800', '\udc00', 'a\ud800', '😀']) await limiter.consume(key)
    const tags = await reader.read('tags')
    expect(new Set(tags.map(({ attributes }) => attributes['tag']))).toEqual(new Set(['other', '😀']))
    expect(sum(tags)).toBe(4)
  })

  it('counts evictions, discarded state and warnings', async () => {
    const limiter = open({ store: memoryStore({ clock, maxKeys: 2 }) })
    expectWarnings(['ANY', 'STORE_FULL'])
    for (let i = 0; i < 5; i++) await limiter.consume(`k${i}`)
    limiter.warn('ANY', 'thing')
    await Promise.resolve()
    expect(sum(await reader.read('evicted'))).toBe(3)
    expect(sum(await reader.read('healed'))).toBe(0)
    expect(sum(await reader.read('warnings'), { code: 'ANY' })).toBe(1)
  })

  it('counts crossings of shares, without their keys', async () => {
    const policies = [fixedWindow({ limit: 10, window: '1h' })]
    const limiter = open({ policies, nearing: [0.5, 1] })
    for (const key of ['a', 'b']) await limiter.consume(key, { cost: 6 })
    await limiter.consume('b', { cost: 4 })
    expect(await reader.read('nearing')).toEqual([
      { attributes: { limiter: 'api', share: '0.5' }, value: 2 },
      { attributes: { limiter: 'api', share: '1' }, value: 1 },
    ])
  })

  it('reports the units that reservations hold, until they are settled or end', async () => {
    let now = 0
    const store = memoryStore({ clock: () => now })
    const limiter = open({
      policies: [fixedWindow({ limit: 100, window: '1h' })],
      reservations: {},
      store,
    })
    expect(await reader.read('held')).toEqual([{ attributes: { limiter: 'api' }, value: 0 }])
    const [a, b] = [
      await limiter.reserve('a', { cost: 30, ttl: '1m' }),
      await limiter.reserve('b', { cost: 50, ttl: '1m' }),
    ]
    expect((await limiter.reserve('a', { cost: 90, ttl: '1m' })).allowed).toBe(false)
    expect(await reader.read('held')).toEqual([{ attributes: { limiter: 'api' }, value: 80 }])
    await a.reservation!.settle(10)
    expect(await reader.read('held')).toEqual([{ attributes: { limiter: 'api' }, value: 50 }])
    await b.reservation!.extend('2m')
    now += 90_000_000
    expect(limiter.held).toBe(50)
    now += 90_000_000
    expect(await reader.read('held')).toEqual([{ attributes: { limiter: 'api' }, value: 0 }])
    open({ name: 'plain' })
    expect(await reader.read('held')).toHaveLength(1)
  })

  it('reports the limits that nobody knows, as they were found last', async () => {
    const limited = async () => new Response('ok')
    const limit = { initial: 1, follow: () => ({ limit: 7, ended: () => 'served' as const }) }
    const semaphore = createSemaphore({ name: 'db', limit })
    const client = limitFetch(limited, { semaphore })
    for (const observed of [semaphore, client]) observe(observed, { ...reader.options, name: 'api' })
    await (await client('https://api.example/')).text()
    expect(await reader.read('adaptiveLimit')).toEqual([
      { attributes: { kind: 'semaphore', name: 'db', key: 'https://api.example' }, value: 7 },
    ])
  })

  it('reports semaphores, queues and memory stores', async () => {
    const store = memoryStore({ clock })
    const semaphore = createSemaphore({ name: 'db', limit: 1, store })
    const queue = createQueue({ semaphore })
    for (const observed of [semaphore, queue]) observe(observed, { ...reader.options, name: 'jobs' })
    observe(store, { ...reader.options, name: 'main' })
    const limiter = open({ store })
    await limiter.consume('k')
    const permit = await semaphore.acquire('default')
    const job = queue.run(() => 'done')
    for (let i = 0; i < 5; i++) await new Promise(setImmediate)
    expect(await reader.read('inUse')).toEqual([{ attributes: { semaphore: 'db' }, value: 1 }])
    expect(await reader.read('waiting')).toEqual(
      expect.arrayContaining([
        { attributes: { kind: 'semaphore', name: 'db' }, value: 1 },
        { attributes: { kind: 'queue', name: 'jobs' }, value: 1 },
        { attributes: { kind: 'limiter', name: 'api' }, value: 0 },
      ]),
    )
    await permit.release()
    await job
    expect(await reader.read('keys')).toEqual([{ attributes: { store: 'main' }, value: 1 }])
    expect(sum(await reader.read('acquireDuration'), { kind: 'semaphore' })).toBe(2)
    await queue.close()
    await semaphore.close()
    closing.push(store)
  })

  it('counts an object once that is observed twice, and nothing after its end', async () => {
    const limiter = open({})
    const stop = observe(limiter, reader.options)
    await limiter.consume('k')
    expect(sum(await reader.read('decisions'))).toBe(1)
    stop()
    stop()
    await limiter.consume('k')
    expect(sum(await reader.read('decisions'))).toBe(1)
    observe(limiter, reader.options)
    await limiter.consume('k')
    expect(sum(await reader.read('decisions'))).toBe(2)
  })

  it('counts the errors of a policy file once, also where its observation ended in between', async () => {
    const watched = {
      ageMs: 0,
      digest: '',
      errors: 5,
      ready: async () => {},
      require: () => {},
      close: () => {},
    }
    const stop = observe(watched, reader.options)
    expect(sum(await reader.read('policiesErrors'))).toBe(5)
    stop()
    await reader.read('policiesErrors')
    watched.errors = 6
    observe(watched, reader.options)()
    const end = observe(watched, reader.options)
    expect(sum(await reader.read('policiesErrors'))).toBe(6)
    end()
  })

  it('counts limiters of one name together, and keeps the counts of one that is closed', async () => {
    const [first, second] = [open({}), open({})]
    await first.consume('k')
    await second.consume('k')
    await first.close()
    expect(await reader.read('decisions')).toMatchObject([{ value: 2 }])
    expect(() => observe(first, READERS[0]![1]().options)).toThrow(
      expect.objectContaining({ code: 'CLOSED', message: "the limiter 'api' is closed" }),
    )
  })

  it('has as many series as the table says, whatever the keys', async () => {
    const windows = ['1s', '1m', '1h', '2h', '1d'] as const
    const policies = windows.map((window) => fixedWindow({ limit: 3, window, name: `per ${window}` }))
    for (let l = 0; l < 10; l++) {
      const limiter = open({ name: `l${l}`, policies })
      for (let key = 0; key < 1000; key++) void limiter.decide(`user:${key % 500}`, { cost: 2 })
    }
    expect((await reader.read('decisions')).length).toBeLessThanOrEqual(10 * 5 * 24)
    expect((await reader.read('evaluations')).length).toBeLessThanOrEqual(10 * 5 * 2)
    expect((await reader.read('utilization')).length).toBeLessThanOrEqual(10 * 5 * 6)
    expect(await reader.read('limit')).toHaveLength(10 * 5)
    const names = await Promise.all(
      (['decisions', 'evaluations', 'utilization', 'limit', 'window'] as const).map((id) => reader.read(id)),
    )
    expect(JSON.stringify(names)).not.toContain('user:')
    expect(sum(await reader.read('decisions'))).toBe(10_000)
  })

  it('has 33 policies a limiter at the most', async () => {
    const limiter = open({})
    for (let i = 0; i < 50; i++) {
      await limiter.consume('k', { policies: [slidingLog({ limit: 10 + i, window: '10s' })] })
    }
    const decisions = await reader.read('decisions')
    expect(new Set(decisions.map(({ attributes }) => attributes['policy'])).size).toBe(33)
    expect(sum(decisions)).toBe(50)
  })
})

it('adds nothing below 0 to a counter of a meter, where a series ends or begins anew', () => {
  const added: [name: string, value: number][] = []
  const callbacks: ((result: { observe(): void }) => void)[] = []
  const made = (name: string) => ({
    add: (value: number) => void added.push([name, value]),
    record: () => {},
  })
  const meter = {
    createCounter: made,
    createUpDownCounter: made,
    createHistogram: made,
    createObservableGauge: () => ({
      addCallback: (read: (typeof callbacks)[number]) => void callbacks.push(read),
    }),
  }
  const collect = () => callbacks.forEach((read) => read({ observe: () => {} }))
  const file = (errors: number) => ({
    ageMs: 0,
    digest: '',
    errors,
    ready: async () => {},
    require: () => {},
    close: () => {},
  })
  const stop = observe(file(5), { meter })
  collect()
  stop()
  collect()
  observe(file(2), { meter })
  collect()
  expect(added).toEqual([5, 2].map((value) => [INSTRUMENTS.policiesErrors.name, value]))
})

describe('observe', () => {
  const limiter = createLimiter({ policies: [gcra({ limit: 1, window: '1s' })] })
  const { options } = READERS[1]![1]()

  it.each<[string, () => unknown]>([
    ['observe takes a limiter', () => observe({} as never, options)],
    ['observe takes a limiter', () => observe(undefined as never, options)],
    ['either a meter or prometheus', () => observe(limiter, {})],
    ['either a meter or prometheus', () => observe(limiter, undefined as never)],
    ['meter must be a Meter', () => observe(limiter, { meter: {} as never })],
    ['meter must be a Meter', () => observe(limiter, { meter: null as never })],
    ['prometheus must be the module', () => observe(limiter, { prometheus: {} as never })],
    ['registry must be a Registry', () => observe(limiter, { ...options, registry: 3 as never })],
    ['tag must be a function', () => observe(limiter, { ...options, tag: 'key' as never })],
    ['name must be a string', () => observe(limiter, { ...options, name: 5 as never })],
  ])('refuses what it cannot use: %s', (message, act) => {
    expect(act).toThrow(
      expect.objectContaining({
        name: 'PolicyError',
        code: 'INVALID_OPTION',
        message: expect.stringContaining(message),
      }),
    )
  })

  it('warns once of a meter that records nothing, as that of the API before the SDK has started', async () => {
    const written = expectWarnings(['METER_RECORDS_NOTHING'])
    const silent = metrics.getMeter('early')
    const semaphore = createSemaphore({ limit: 1 })
    for (const each of [limiter, semaphore]) observe(each, { meter: silent })
    for (const each of [limiter, semaphore]) observe(each, { meter: createNoopMeter() })
    await new Promise(setImmediate)
    expect(written.map(({ message }) => message)).toEqual([expect.stringContaining('start the SDK first')])
    await semaphore.close()
  })

  it('reports to a registry of prom-client that was cleared meanwhile', async () => {
    const registry = new promClient.Registry()
    const sink = { prometheus: promClient, registry }
    const [first, second] = ['first', 'second'].map((name) =>
      createLimiter({ name, policies: [gcra({ limit: 1, window: '1s' })] }),
    ) as [Limiter, Limiter]
    closing.push(first, second)
    observe(first, sink)
    registry.clear()
    observe(second, sink)
    await second.consume('k')
    const text = await registry.metrics()
    expect(text).toContain('sluice_decisions_total{limiter="second"')
    expect(text).toContain('sluice_store_duration_seconds')
  })

  it('reports gauges of several workers of node:cluster without adding them up', async () => {
    const registry = new promClient.Registry()
    const later = new LaterStore(clock)
    const limiter = createLimiter({
      name: 'api',
      policies: [gcra({ limit: 7, window: '2s' })],
      store: later,
    })
    closing.push(limiter)
    observe(limiter, { prometheus: promClient, registry })
    await limiter.consume('k')
    const worker = await registry.getMetricsAsJSON()
    const text = await promClient.AggregatorRegistry.aggregate([worker, worker, worker]).metrics()
    for (const line of [
      'sluice_limit{limiter="api",policy="7-per-2s"} 7',
      'sluice_window_seconds{limiter="api",policy="7-per-2s"} 2',
      'sluice_store_available{limiter="api"} 1',
      'sluice_waiting{kind="limiter",name="api"} 0',
    ]) {
      expect(text).toContain(line)
    }
    expect(text).toMatch(/sluice_decisions_total\{.*\} 3/)
  })

  it('refuses two stores of one name', () => {
    const reader = READERS[1]![1]()
    observe(memoryStore(), reader.options)
    expect(() => observe(memoryStore(), reader.options)).toThrow(
      expect.objectContaining({ code: 'DUPLICATE_NAME' }),
    )
  })
})
