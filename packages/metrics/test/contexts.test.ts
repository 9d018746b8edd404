import { context, trace } from '@opentelemetry/api'
import { InMemorySpanExporter, NodeTracerProvider, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-node'
import {
  consumeAll,
  createLimiter,
  createSemaphore,
  fixedWindow,
  type Limiter,
  memoryStore,
} from '@sluice/core'
import type { Store } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { type PostgresServer, startPostgres } from '@sluice/harness/postgres'
import { type RedisServer, startRedis } from '@sluice/harness/redis'
import { machineStore } from '@sluice/machine'
import { postgresStore } from '@sluice/postgres'
import { AsyncLocalStorage } from 'node:async_hooks'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { annotateSpans, observe } from '../src/index.js'
import { READERS } from './readers.js'

/*
 * A store answers many calls at once, in the context of one of them. What listens to the decision of a call runs in the
 * AsyncLocalStorage context of that call, on every store and by every way to ask.
 */

const REQUESTS = 1000
const LIMIT = 1_000_000
const policies = [fixedWindow({ limit: LIMIT, window: '1d' })]
const stores: Record<string, Store> = {}
const closing: (() => unknown)[] = []
let redis: RedisServer
let postgres: PostgresServer

beforeAll(async () => {
  ;[redis, postgres] = await Promise.all([startRedis(), startPostgres()])
  const folder = mkdtempSync(join(tmpdir(), 'sluice-'))
  const server = machineStore({ name: 'contexts', folder, serve: true })
  await server.ready()
  Object.assign(stores, {
    memory: memoryStore(),
    machine: machineStore({ name: 'contexts', folder, serve: false }),
    Redis: redisStore({ host: redis.host, port: redis.port }),
    Postgres: postgresStore(postgres.url),
  })
  closing.push(
    () => server.close(),
    () => rmSync(folder, { recursive: true }),
    () => redis.stop(),
    () => postgres.stop(),
  )
})
afterAll(async () => {
  for (const store of Object.values(stores)) await store.close()
  for (const close of closing) await close()
})

/** Makes all requests, so many at once. */
async function make(atOnce: number, request: (i: number) => Promise<unknown>, all = REQUESTS): Promise<void> {
  let next = 0
  const connection = async () => {
    while (next < all) await request(next++)
  }
  await Promise.all(Array.from({ length: atOnce }, connection))
}

let named = 0
const opened = (store: string, more: object = {}): Limiter =>
  createLimiter({ name: `l${named++}`, policies, store: stores[store]!, deadline: '20s', ...more })

const CASES = ['memory', 'machine', 'Redis', 'Postgres'].flatMap((store) =>
  [1, 20, 100].map((atOnce) => [store, atOnce] as const),
)

describe('spans of the SDK of OpenTelemetry', () => {
  const exporter = new InMemorySpanExporter()
  const provider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
  const tracer = provider.getTracer('test')
  beforeAll(() => provider.register({ propagator: null }))
  afterAll(() => {
    trace.disable()
    context.disable()
  })

  it.each(CASES)('have exactly their own decision: %s, %i at once', async (store, atOnce) => {
    exporter.reset()
    const limiter = opened(store)
    let writes = 0
    const counted = {
      getActiveSpan: () => {
        writes++
        return trace.getActiveSpan()
      },
    }
    annotateSpans(limiter, { trace: counted })
    // By what remains of its own key a span shows whose decision it has.
    await make(atOnce, (i) =>
      tracer.startActiveSpan(`request ${i}`, async (span) => {
        await limiter.consume(`k${i}`, { cost: i + 1 })
        span.end()
      }),
    )
    const wrong = exporter
      .getFinishedSpans()
      .filter(({ name, attributes }) => attributes['sluice.remaining'] !== LIMIT - Number(name.slice(8)) - 1)
    expect(wrong.map(({ name }) => name)).toEqual([])
    expect(exporter.getFinishedSpans()).toHaveLength(REQUESTS)
    expect(writes).toBe(REQUESTS)
    await limiter.close()
  })
})

const WAYS: Record<string, (limiters: readonly Limiter[], key: string) => unknown> = {
  consume: ([one], key) => one!.consume(key),
  'consume with leases': ([, , leased], key) => leased!.consume(key),
  decide: ([one], key) => one!.decide(key),
  acquire: ([one], key) => one!.acquire(key),
  'consumeAll of one': ([one], key) => consumeAll([{ limiter: one!, key }]),
  'consumeAll of two': ([one, two], key) =>
    consumeAll([one, two].map((limiter) => ({ limiter: limiter!, key }))),
  'consumeAll of a memory store too': ([one, , , local], key) =>
    consumeAll([one, local].map((limiter) => ({ limiter: limiter!, key }))),
}

const EVENTS = [
  ...CASES.map((at) => ['decision', ...at] as const),
  ...CASES.filter(([, atOnce]) => atOnce === 100).map((at) => ['nearing', ...at] as const),
]

describe.each(EVENTS)("listeners of '%s': %s, %i at once", (event, store, atOnce) => {
  it.each(Object.entries(WAYS))(
    'run in the context of their call before it goes on: %s',
    async (way, call) => {
      const open = (store: string, more: object = {}) =>
        opened(store, event === 'nearing' ? { nearing: 1 / LIMIT, ...more } : more)
      const als = new AsyncLocalStorage<{ readonly key: string; heard: number }>()
      const leases = { ttl: '1s', size: 100 } as const
      const limiters = [open(store), open(store), ...(store === 'memory' ? [] : [open(store, { leases })])]
      limiters[2] ??= open(store)
      limiters[3] = open('memory')
      let strange = 0
      for (const limiter of limiters) {
        limiter.on(event, ({ key }) => {
          const own = als.getStore()
          if (own?.key === key) own.heard++
          else strange++
        })
      }
      const calls = way === 'consumeAll of two' || way === 'consumeAll of a memory store too' ? 2 : 1
      const missed: string[] = []
      // Some share a key, so that a lease has something to serve. A share is crossed once.
      const keys = event === 'decision' ? 100 : Infinity
      const request = (i: number) => {
        const own = { key: `k${i % keys}`, heard: 0 }
        return als.run(own, async () => {
          await call(limiters, own.key)
          if (own.heard !== calls) missed.push(own.key)
        })
      }
      await make(atOnce, request, 300)
      expect({ strange, missed }).toEqual({ strange: 0, missed: [] })
      await Promise.all(limiters.map((limiter) => limiter.close()))
    },
  )
})

it.each(['memory', 'machine', 'Redis', 'Postgres'])(
  'permits are reported to their own call: %s',
  async (store) => {
    const als = new AsyncLocalStorage<string>()
    const semaphore = createSemaphore({
      name: `s-${store}`,
      limit: 5,
      store: stores[store]!,
      deadline: '20s',
    })
    const reported: (string | undefined)[] = []
    for (const type of ['granted', 'waited', 'denied', 'released'] as const) {
      semaphore.on(type, ({ key }) => void (als.getStore() === key || reported.push(`${type} ${key}`)))
    }
    const calls = Array.from({ length: 60 }, (_, i) =>
      als.run(`k${i % 2}`, async () => {
        const permit = await semaphore.acquire(`k${i % 2}`, { maxWait: i % 3 === 0 ? 0 : '20s' })
        await new Promise(setImmediate)
        await permit.release()
      }),
    )
    await Promise.all(calls)
    expect(reported).toEqual([])
    await semaphore.close()
  },
)

it('tags are made in the context of their call', async () => {
  const als = new AsyncLocalStorage<string>()
  const limiter = opened('Redis')
  const [, openReader] = READERS[1]!
  const reader = openReader()
  const strange: string[] = []
  const tag = (key: string): string => {
    if (als.getStore() !== key) strange.push(key)
    return 'all'
  }
  const stop = observe(limiter, { ...reader.options, tag })
  await make(100, (i) => als.run(`k${i}`, () => limiter.consume(`k${i}`)))
  expect(strange).toEqual([])
  stop()
  await limiter.close()
  await reader.close()
})
