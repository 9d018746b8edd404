import { createLimiter, gcra } from '@sluice/core'
import { until } from '@sluice/harness/redis'
import {
  postgresSchema,
  type PostgresStore,
  postgresStore,
  type PostgresStoreOptions,
} from '@sluice/postgres'
import type { Pool } from 'pg'
import { onePostgres } from './one-postgres.js'

const own = onePostgres()
const stores: PostgresStore[] = []
afterEach(() => Promise.all(stores.splice(0).map((store) => store.close())))

/** A pool whose sessions have these settings, each session the next of the list. */
const poolOf = (settings: readonly string[], max = settings.length): Pool => {
  let opened = 0
  return own.open(own.server.url, max, (client) => client.query(settings[opened++ % settings.length]!))
}
const open = (client: Pool, options: PostgresStoreOptions) => {
  const store = postgresStore(client, options)
  stores.push(store)
  const warnings: { code: string; message: string }[] = []
  const policies = [gcra({ limit: 5, window: '1d', burst: 5 })]
  const limiter = createLimiter({ name: 'x', policies, store, onStoreError: 'throw', deadline: '10s' })
  limiter.on('warning', (warning) => warnings.push(warning))
  return { store, limiter, warnings }
}
/** Occupies connections of a pool in turn, so that the next statement takes another session. */
const inOtherSession = async <T>(pool: Pool, act: () => Promise<T>): Promise<T> => {
  const held = await pool.connect()
  try {
    return await act()
  } finally {
    held.release()
  }
}
const schemasWith = async (table: string) => {
  const found = `select relnamespace::regnamespace::text as schema from pg_class where relname = $1 order by 1`
  return (await own.pool.query(found, [table])).rows.map(({ schema }) => schema as string)
}

describe('sessions that differ in search_path', () => {
  const PATHS = ['set search_path = one', 'set search_path = two']
  beforeAll(() => own.pool.query('create schema one; create schema two; create schema named'))

  it('make one table, whose limit is exact, and are warned of once', async () => {
    const pool = poolOf(PATHS)
    const { store, limiter, warnings } = open(pool, { table: 'paths' })
    await store.ready()
    const decisions = await Promise.all(Array.from({ length: 20 }, (_, i) => limiter.consume(`${i % 2}`)))
    expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(10)
    for (const each of ['c', 'd']) {
      await limiter.consume(each)
      await inOtherSession(pool, () => limiter.consume(`other ${each}`))
    }
    expect(await schemasWith('paths')).toHaveLength(1)
    expect(warnings).toMatchObject([
      { code: 'POSTGRES_SEARCH_PATH', message: expect.stringMatching(/schema: '(one|two)'/) },
    ])
  })

  it('are not warned of where the store names its schema, and every statement names it', async () => {
    const pool = poolOf(PATHS)
    const texts: string[] = []
    const query = pool.query.bind(pool) as (statement: object) => Promise<unknown>
    const noting = (statement: { text: string }) => {
      texts.push(statement.text)
      return query(statement)
    }
    const { limiter, warnings } = open(Object.assign(pool, { query: noting }), {
      table: 'with_schema',
      schema: 'named',
    })
    for (const key of ['a', 'b', 'c']) {
      await limiter.consume(key)
      await inOtherSession(pool, () => limiter.consume(key))
    }
    await Promise.all(['a', 'b', 'new'].map((key) => limiter.consume(key)))
    const naming = texts.filter((text) => /with_schema/.test(text))
    expect(naming.length).toBeGreaterThan(3)
    for (const text of naming) expect(text.replaceAll('"named"."with_schema"', '')).not.toMatch(/with_schema/)
    expect([await schemasWith('with_schema'), warnings]).toEqual([['named'], []])
  })

  it('make the table again in the schema alone where it was', async () => {
    const pool = poolOf(PATHS)
    const { store, limiter } = open(pool, { table: 'again' })
    await store.ready()
    const before = await schemasWith('again')
    await own.pool.query(`drop table ${before[0]}.again`)
    await inOtherSession(pool, () => expect(limiter.consume('a')).rejects.toMatchObject({ sent: false }))
    const held = await pool.connect()
    await limiter.consume('a').catch(() => {})
    held.release()
    await limiter.consume('b').catch(() => {})
    expect(await schemasWith('again')).toEqual(before)
  })

  it('of two pools make a table each, and the second store warns, unless it names its schema', async () => {
    const [first, second] = PATHS.map((path) => open(poolOf([path]), { table: 'each' }))
    for (const { store, limiter } of [first!, second!]) {
      await store.ready()
      await limiter.consume('a')
    }
    expect(await schemasWith('each')).toEqual(['one', 'two'])
    expect([first!.warnings, second!.warnings]).toMatchObject([[], [{ code: 'POSTGRES_SEARCH_PATH' }]])
    const named = open(poolOf([PATHS[0]!]), { table: 'each', schema: 'two' })
    expect((await named.limiter.consume('a')).remaining).toBe(3)
    expect(named.warnings).toEqual([])
  })

  it('without a schema to make a table in are one clear error', async () => {
    const { store } = open(poolOf(["set search_path = ''"]), { table: 'nowhere' })
    await expect(store.ready()).rejects.toMatchObject({
      code: 'STORE_ERROR',
      message: expect.stringMatching(/schema/),
    })
  })
})

it('a schema stands in the statement for migrations', () => {
  expect(postgresSchema({ schema: 'named', table: 'Limits' })).toContain('"named"."Limits"')
  expect(() => postgresSchema({ schema: 'a"b' })).toThrow('schema must be a name of letters')
  expect(() => postgresSchema({ table: 'a.b' })).toThrow('table must be a name of letters')
})

it.each(['repeatable read', 'serializable'])(
  '480 stores start at once where sessions are %s',
  async (level) => {
    const pool = own.open(
      `${own.server.url}?options=${encodeURIComponent(`-c default_transaction_isolation=${level.replace(' ', '\\ ')}`)}`,
      20,
    )
    pool.setMaxListeners(0)
    for (const table of [`start_${level[0]}`, `start_again_${level[0]}`]) {
      const opened = Array.from({ length: 480 }, () => postgresStore(pool, { table }))
      stores.push(...opened)
      const outcomes = await Promise.allSettled(opened.map((store) => store.ready()))
      const failures = outcomes.flatMap((outcome) =>
        outcome.status === 'rejected' ? [String(outcome.reason)] : [],
      )
      expect([...new Set(failures)]).toEqual([])
    }
  },
)

it('a store that loses the race for the mark of its table starts', async () => {
  await own.pool.query(postgresSchema({ table: 'marked' }))
  const other = await own.pool.connect()
  const id = '00000000-0000-0000-0000-000000000000'
  await other.query(`begin; insert into marked values ('${id}', 1, 9223372036854775807, '')`)
  const { store, limiter } = open(poolOf([`set default_transaction_isolation = 'repeatable read'`]), {
    table: 'marked',
  })
  const ready = store.ready()
  const waiting = `select 1 from pg_stat_activity where wait_event_type = 'Lock'`
  await until('the store to wait', async () => (await own.pool.query(waiting)).rowCount === 1)
  await other.query('commit')
  other.release()
  await expect(ready).resolves.toBeUndefined()
  expect((await limiter.consume('a')).remaining).toBe(4)
})
