import { command, info, monitor, type RedisServer, startCluster, startRedis } from '@sluice/harness/redis'
import { expectWarnings } from '@sluice/harness/warnings'
import { Cluster, Redis } from 'ioredis'
import type { Records } from '../../../src/stores/store.js'
import {
  consumeAll,
  createLimiter,
  fixedWindow,
  type Limiter,
  type LimiterOptions,
  peekAll,
} from '../../../src/index.js'
import { redisRecords } from '../../../src/stores/redis/records.js'
import type { ScriptRunner } from '../../../src/stores/redis/script/runner.js'
import { redisStore, type RedisStore, type RedisStoreOptions } from '../../../src/stores/redis/index.js'

jest.setTimeout(60_000)

const WHO = { reason: 'a campaign', by: 'ops' }
const policies = [fixedWindow({ limit: 2, window: '1d' })]
const raise = { limit: 5, until: '1h', ...WHO }

let server: RedisServer
beforeEach(async () => void (server = await startRedis()))
afterEach(async () => {
  for (const close of opened.splice(0)) await close()
  await server.stop()
})

const opened: (() => Promise<void> | void)[] = []
const urlOf = ({ host, port }: RedisServer) => `redis://${host}:${port}`

/** A store and a limiter of it, as another process has them. */
function processOf(
  options: RedisStoreOptions = {},
  limiterOptions: Partial<LimiterOptions> = {},
  given?: RedisStore,
) {
  const store = given ?? redisStore(urlOf(server), options)
  const limiter = createLimiter({
    name: 'api',
    policies,
    store,
    onStoreError: 'throw',
    deadline: '5s',
    ...limiterOptions,
  })
  opened.push(() => limiter.close())
  if (!given) opened.push(() => store.close())
  return { store, limiter }
}

/** Resolves with the next change that a limiter learns of. */
const nextChange = (limiter: Limiter) =>
  new Promise<string>((resolve) => {
    const stop = limiter.on('override', ({ change, record }) => {
      stop()
      resolve(`${change} ${record.kind} ${record.key}`)
    })
  })

describe('an override in Redis', () => {
  it('is in force in another process after its next read, and gone after the one that finds it removed', async () => {
    const [one, other] = [processOf().limiter, processOf().limiter]
    await other.consume('a', { cost: 2 })
    expect((await other.consume('a')).allowed).toBe(false)
    const learned = nextChange(other)
    const made = await one.override('a', raise)
    expect((await one.consume('a')).allowed).toBe(true)
    expect(await learned).toBe('set override a')
    expect(await other.consume('a')).toMatchObject({ allowed: true, limit: 5, remaining: 1 })
    expect(made).toMatchObject({ ...WHO, kind: 'override', limits: { '2-per-1d': 5 } })
    const ended = nextChange(one)
    await other.removeOverride('a')
    expect(await ended).toBe('removed override a')
    expect((await one.peek('a')).limit).toBe(2)
  })

  it('is known to the first call of a process', async () => {
    await processOf().limiter.override('a', raise)
    const { limiter } = processOf({}, { deadline: '50ms' })
    expect(await limiter.consume('a', { cost: 5 })).toMatchObject({ allowed: true, limit: 5 })
  })

  it('is of its prefix, and keeps to its key however that is written', async () => {
    const { limiter } = processOf()
    const elsewhere = processOf({ prefix: 'other' }).limiter
    const keys = ['{a}:b%', 'k'.repeat(300), '\ud800', '\udc00', 'a\nb\0\u2028\u2029', '']
    for (const [i, key] of keys.entries()) await limiter.override(key, { ...raise, limit: 10 + i })
    const other = processOf().limiter
    for (const [i, key] of keys.entries()) {
      expect((await other.peek(key)).limit).toBe(10 + i)
      expect((await elsewhere.peek(key)).limit).toBe(2)
    }
    expect((await other.overrides()).map(({ key }) => key).toSorted()).toEqual(keys.toSorted())
  })

  it('is found in groups and in a Cluster', async () => {
    const cluster = await startCluster({ masters: 3 })
    const client = new Cluster(
      cluster.masters.map(({ host, port }) => ({ host, port })),
      { redisOptions: { maxRetriesPerRequest: 0 }, retryDelayOnFailover: 0 },
    )
    const { limiter } = processOf({}, {}, redisStore(client, { groups: 4 }))
    const other = processOf({}, {}, redisStore(client, { groups: 4 })).limiter
    for (let i = 0; i < 8; i++) await limiter.override(`user:${i}`, { ...raise, limit: 10 + i })
    for (let i = 0; i < 8; i++) expect((await other.peek(`user:${i}`)).limit).toBe(10 + i)
    for (const close of opened.splice(0)) await close()
    client.disconnect()
    await cluster.stop()
  })

  it('is read by one command a second for all limiters of a store, and by none once they are closed', async () => {
    const { store, limiter } = processOf({ groupCommit: false })
    const others = Array.from({ length: 20 }, (_, i) => processOf({}, { name: `other${i}` }, store).limiter)
    await Promise.all(others.map((each) => each.consume('a')))
    const watch = await monitor(server)
    const learned = nextChange(others[0]!)
    await processOf({}, { name: 'other0' }).limiter.override('a', raise)
    await learned
    await Promise.all(others.map((each) => each.consume('a')))
    const lines = await watch.stop()
    // The writer's first read, its write with a peek and a correction, and at most two ticks beside the calls.
    expect(lines.filter((line) => /"eval(?:sha)?".*::records:/.test(line)).length).toBeLessThanOrEqual(5)
    expect(lines.filter((line) => /"eval(?:sha)?".*:other/.test(line)).length).toBe(20 + 2)
    await limiter.close()
  })

  it.each([['consumeAll', consumeAll] as const, ['peekAll', peekAll] as const])(
    'is in force in the first %s of another process, in each of its limiters',
    async (_, ask) => {
      const names = ['one', 'two']
      for (const name of names) await processOf({}, { name }).limiter.override('a', { ...raise, limit: 10 })
      const parts = names.map((name) => ({ limiter: processOf({}, { name }).limiter, key: 'a' }))
      expect((await ask(parts)).decisions.map(({ limit }) => limit)).toEqual([10, 10])
    },
  )

  it('notes when it was applied last, by the clock of Redis', async () => {
    const [one, other] = [processOf().limiter, processOf().limiter]
    await one.override('a', raise)
    await peekAll([{ limiter: other, key: 'a' }])
    await other.overrides()
    expect((await one.overrides())[0]!.lastAppliedAt).toBeUndefined()
    await other.consume('a')
    await other.overrides() // which reports what was applied
    const [{ lastAppliedAt, madeAt } = {}] = await one.overrides()
    expect(Number(lastAppliedAt)).toBeGreaterThanOrEqual(Number(madeAt))
  })
})

describe('many records', () => {
  const HOUR = 3_600_000_000
  let client: Redis
  let table: Records
  let known = 0
  /** The sizes of replies in bytes, and what happens before the next call. */
  let replies: number[]
  let meanwhile: (() => Promise<unknown>) | undefined

  beforeEach(async () => {
    client = new Redis(server.port, server.host)
    ;[replies, meanwhile, known] = [[], undefined, 0]
    const run = async (script: string, key: string, argument: Buffer): Promise<Buffer> => {
      const reply = (await client.callBuffer('EVAL', script, 1, key, argument)) as Buffer
      replies.push(reply.length)
      const [act] = [meanwhile, (meanwhile = undefined)]
      await act?.()
      return reply
    }
    table = redisRecords('sluice:records:', { run } as unknown as ScriptRunner, undefined)
    for (let i = 0; i < 1500; i++) await put(i, 'x'.repeat(100))
    replies = []
  })
  afterEach(() => client.disconnect())

  const idOf = (i: number) => `limiter\n${i}`
  const put = async (i: number, text: string): Promise<void> => {
    const written = await table.write({ id: idOf(i), text, until: 0, life: HOUR, most: 10_000 }, known)
    known = written!.version
  }

  it('come in pages, none of which keeps Redis for long', async () => {
    const { areAll, records } = await table.read(0, [])
    expect(areAll).toBe(true)
    expect(records.map(({ id }) => id).toSorted()).toEqual(
      Array.from({ length: 1500 }, (_, i) => idOf(i)).toSorted(),
    )
    // Some 200 fields a page.
    expect(Math.max(...replies)).toBeLessThan(250 * 200)
  })

  it('are as they were after the last page, whatever was written in between', async () => {
    meanwhile = async () => {
      for (let i = 0; i < 800; i++) await put(i, i % 2 ? 'changed' : '')
      await put(5000, 'new')
    }
    const { version, records } = await table.read(0, [])
    const texts = new Map(records.map(({ id, text }) => [id, text]))
    expect(texts.size).toBe(records.length)
    expect(records.length).toBe(1500 - 400 + 1)
    expect(['0', '1', '799', '800', '5000'].map((i) => texts.get(idOf(Number(i))))).toEqual([
      undefined,
      'changed',
      'changed',
      'x'.repeat(100),
      'new',
    ])
    expect(await table.read(version, [])).toMatchObject({ areAll: false, records: [] })
  })

  it('have the version of their own write, whatever was written between its pages', async () => {
    meanwhile = () => put(8, 'of another')
    const written = await table.write({ id: idOf(7), text: 'own', until: 0, life: HOUR, most: 10_000 }, 1)
    expect(replies.length).toBeGreaterThan(2) // in pages, as the version 1 is not in the log
    const versions = new Map(written!.records.map(({ id, version }) => [id, version]))
    expect(written!.written).toBe(versions.get(idOf(7)))
    expect(written!.version).toBe(versions.get(idOf(8)))
  })

  it('are read anew where their server has lost them between two pages', async () => {
    meanwhile = async () => {
      await client.flushall()
      await put(7, 'begun anew')
    }
    const { areAll, records } = await table.read(0, [])
    expect([areAll, records.map(({ text }) => text)]).toEqual([true, ['begun anew']])
  })
})

describe('without Redis', () => {
  it('overrides stand as they were known, each until its end', async () => {
    expectWarnings(['STORE_DEGRADED'])
    const { limiter } = processOf({}, { onStoreError: 'local', deadline: '100ms' })
    await limiter.override('a', raise)
    await limiter.override('b', { ...raise, until: '1500ms' })
    const until = (await limiter.overrides()).find(({ key }) => key === 'b')!.until
    const ended = nextChange(limiter)
    await server.stop()
    expect(await limiter.consume('a', { cost: 5 })).toMatchObject({
      allowed: true,
      limit: 5,
      degraded: 'unavailable',
    })
    await expect(limiter.override('c', raise)).rejects.toMatchObject({ name: 'StoreError' })
    expect(await ended).toBe('ended override b')
    expect(Date.now()).toBeGreaterThanOrEqual(Number(until) - 50)
    expect((await limiter.consume('b')).limit).toBe(2)
  })

  it('the first calls wait no longer than the first connection takes to fail', async () => {
    expectWarnings(['STORE_DEGRADED'])
    await server.stop()
    const { limiter } = processOf({ startTimeout: '1m' }, { onStoreError: 'local' })
    expect((await limiter.consume('a')).degraded).toBe('unavailable')
  })
})

it('records of another type are begun anew, and those that nobody can read are left alone', async () => {
  const { limiter } = processOf()
  await command(server, 'RPUSH', 'sluice:4::records:', 'x')
  expect((await limiter.consume('a')).limit).toBe(2)
  await limiter.override('a', raise)
  await command(server, 'HSET', 'sluice:4::records:', 'rnew thing\n"a"', `${'\0'.repeat(16)}{`)
  const other = processOf().limiter
  expect((await other.overrides()).map(({ key }) => key)).toEqual(['a'])
  expect((await other.peek('a')).limit).toBe(5)
  expect((await info(server, 'keyspace'))['db0']).toMatch(/expires=/)
  expect(Number(await command(server, 'PTTL', 'sluice:4::records:'))).toBeGreaterThan(3_600_000)
})
