import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLimiter, memoryStore, slidingLog, type Store } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { algorithms } from '@sluice/core/store'
import { type PostgresServer, startPostgres } from '@sluice/harness/postgres'
import { type RedisServer, startRedis } from '@sluice/harness/redis'
import { expectWarnings } from '@sluice/harness/warnings'
import { machineStore } from '@sluice/machine'
import { postgresSchema, postgresStore } from '@sluice/postgres'
import { findShapes, sampleOf, type Shape } from '@sluice/testing/internal'
import { createClient } from 'redis'
import { Pool } from 'pg'
import { capacityOption, limiterFrom, type PolicyFile, readPolicies, type Registry } from '../src/index.js'
import { watchPolicies } from '../src/node.js'

/*
 * A raised limit acts at the next call of a process that knows it: nothing that was computed under the old numbers outlives them.
 */

const folder = mkdtempSync(join(tmpdir(), 'sluice-raised-'))
let redis: RedisServer
let postgres: PostgresServer
let client: ReturnType<typeof createClient>
let pool: Pool
const stores: Record<string, Store> = {}

beforeAll(async () => {
  ;[redis, postgres] = await Promise.all([startRedis(), startPostgres()])
  client = createClient({ socket: { port: redis.port } })
  await client.connect()
  pool = new Pool({ connectionString: postgres.url })
  await pool.query(postgresSchema())
  Object.assign(stores, {
    memory: memoryStore(),
    machine: machineStore({ name: 'raised', folder }),
    Redis: redisStore(client),
    Postgres: postgresStore(pool),
  })
})
afterAll(async () => {
  for (const store of Object.values(stores)) await store.close()
  client.destroy()
  await pool.end()
  await Promise.all([redis.stop(), postgres.stop()])
  rmSync(folder, { recursive: true })
})

/** A file of one policy of this shape. A window that is aligned to the epoch is long, so that hardly any ends in between. */
function fileOf(shape: Shape, numbers: object): PolicyFile {
  const { algorithm, variant } = shape
  const policy = sampleOf(shape)
  const isAligned = policy.algorithm.bounds.most(policy, 2) > policy.capacity
  const { options } = (algorithms as Registry)[algorithm]!
  const window = 'window' in options ? { window: isAligned ? '20h' : '1h' } : {}
  return { limiters: { api: { policies: [{ algorithm, ...window, ...variant, ...numbers }] } } } as never
}

const { shapes } = findShapes()
const kinds = { watched, 'asked at each call': asked }
const cases = ['memory', 'machine', 'Redis', 'Postgres'].flatMap((store) =>
  shapes.flatMap((shape) =>
    Object.entries(kinds).map(([kind, open]) => [store, shape.title, kind, shape, open] as const),
  ),
)
type Open = (typeof kinds)[keyof typeof kinds]
let names = 0

/** A limiter of a file that `change` replaces. */
async function opened(store: string, open: Open, file: PolicyFile) {
  const name = `api-${++names}`
  const named = ({ limiters, reset = [] }: PolicyFile): PolicyFile => ({
    limiters: { [name]: limiters['api']! },
    reset: reset.map(() => name),
  })
  const { inForce, change, close } = await open(named(file))
  const limiter = limiterFrom(inForce, name, { store: stores[store]!, deadline: '10s' })
  return {
    limiter,
    change: (next: PolicyFile) => change(named(next)),
    close: async () => {
      close()
      await limiter.close()
    },
  }
}

async function watched(file: PolicyFile) {
  const source = { file, reads: 0 }
  let isInForce = (): void => {}
  const inForce = watchPolicies(async () => (source.reads++, source.file), {
    every: '10ms',
    onChange: () => isInForce(),
  })
  await inForce.ready()
  return {
    inForce,
    close: () => inForce.close(),
    /** Resolves once the file acts, which is at the second read of it: within twice `every`. */
    async change(next: PolicyFile): Promise<void> {
      Object.assign(source, { file: next, reads: 0 })
      await new Promise<void>((resolve) => (isInForce = resolve))
      expect(source.reads).toBe(2)
    },
  }
}

function asked(file: PolicyFile) {
  const read = (each: PolicyFile) => {
    const found = readPolicies(JSON.stringify(each))
    expect(found.errors).toEqual([])
    return found
  }
  const inForce = { current: read(file), require() {} }
  const change = async (next: PolicyFile): Promise<void> => void (inForce.current = read(next))
  return { inForce, change, close: () => {} }
}

// A calendar of a month begins in a store that is made for this test.
beforeEach(() => void expectWarnings([], { perhaps: ['STORE_FORGETS'] }))

describe.each(cases)('in %s, %s, a file %s', (store, _, __, shape, open) => {
  const capacity = capacityOption(shape.algorithm)
  const numbers = (limit: number, most: number) => ({ limit, ...(capacity && { [capacity]: most }) })

  it('a raised limit admits at the next call a key that was denied for long, and a lowered one denies', async () => {
    const { limiter, change, close } = await opened(store, open, fileOf(shape, numbers(2, 2)))
    for (let i = 0; i < 2; i++) expect((await limiter.consume('a')).allowed).toBe(true)
    const denied = await limiter.consume('a')
    expect([denied.allowed, denied.limit]).toEqual([false, 2])
    expect(denied.retryAfterMs).toBeGreaterThan(1000)
    await change(fileOf(shape, numbers(100, 4)))
    const admitted = await limiter.consume('a')
    expect([admitted.allowed, admitted.limit]).toEqual([true, capacity ? 4 : 100])
    expect(admitted.remaining).toBe(capacity ? 1 : 97)
    await change(fileOf(shape, numbers(3, 3)))
    expect((await limiter.consume('a')).allowed).toBe(false)
    await close()
  })

  // No call waits longer than a day.
  const itIfShort = sampleOf(shape).windowMs > 86_400_000 ? it.skip : it
  itIfShort('calls wait behind the last booked turn, which keeps its instant', async () => {
    const { limiter, change, close } = await opened(store, open, fileOf(shape, numbers(1, 1)))
    await limiter.consume('a')
    const controller = new AbortController()
    const { retryAfterMs } = await limiter.peek('a')
    const booked = limiter.acquire('a', { maxWait: '1d', signal: controller.signal })
    booked.catch(() => {})
    while (limiter.waiting === 0) await new Promise((resolve) => setImmediate(resolve))
    await limiter.peek('a')
    await change(fileOf(shape, numbers(100, 100)))
    const behind = await limiter.consume('a')
    expect([behind.allowed, behind.remaining]).toEqual([false, 0])
    expect(behind.retryAfterMs).toBeLessThanOrEqual(retryAfterMs)
    expect(behind.retryAfterMs).toBeGreaterThan(retryAfterMs - 10_000)
    controller.abort()
    await expect(booked).rejects.toThrow(/abort/i)
    await close()
  })
})

it.each(Object.entries(kinds))('a ban and a reset reach the plan that a file brings, %s', async (_, open) => {
  const policies = [{ algorithm: 'gcra', limit: 10, window: '1m' }] as const
  const pro = [{ algorithm: 'slidingLog', limit: 5, window: '1h' }] as const
  const { limiter, change, close } = await opened('memory', open, { limiters: { api: { policies } } })
  await change({ limiters: { api: { policies, plans: { pro } } }, reset: ['api'] })
  const { name } = limiter
  const other = createLimiter({
    name,
    policies: [slidingLog({ limit: 5, window: '1h' })],
    store: stores['memory']!,
  })
  await other.consume('a', { cost: 5 })
  await limiter.reset('a')
  expect((await other.peek('a')).remaining).toBe(5)
  await limiter.block('a', '1h')
  expect(await other.consume('a')).toMatchObject({ allowed: false, reason: 'blocked' })
  await close()
})
