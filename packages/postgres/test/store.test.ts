import { calendarWindow } from '@sluice/calendar'
import { consumeAll, createLimiter, createSemaphore, gcra, slidingWindow, tokenBucket } from '@sluice/core'
import { startPgBouncer } from '@sluice/harness/postgres'
import { pause, until } from '@sluice/harness/redis'
import { expectWarnings } from '@sluice/harness/warnings'
import {
  postgresSchema,
  type PostgresStore,
  postgresStore,
  type PostgresStoreOptions,
} from '@sluice/postgres'
import { Client } from 'pg'
import postgres from 'postgres'
import { databaseOf } from '../src/database.js'
import { StateRows } from '../src/rows.js'
import { Sweep } from '../src/sweep.js'
import { onePostgres } from './one-postgres.js'

jest.setTimeout(60_000)

const own = onePostgres()
const stores: PostgresStore[] = []
afterEach(() => Promise.all(stores.splice(0).map((store) => store.close())))

let tables = 0
const open = (options: PostgresStoreOptions = {}, client: Parameters<typeof postgresStore>[0] = own.pool) => {
  const store = postgresStore(client, { table: `t${++tables}`, ...options })
  stores.push(store)
  return store
}
const limiterOn = (store: PostgresStore) =>
  createLimiter({
    name: 'x',
    policies: [gcra({ limit: 5, window: '1d', burst: 5 })],
    store,
    onStoreError: 'throw',
    deadline: '10s',
  })
const rows = async (sql: string) => (await own.pool.query(sql)).rows as Record<string, unknown>[]

describe('a key that is full again in a far future', () => {
  it.each([200_000, 2 ** 31])('is kept until then: a day for each of %s units', async (capacity) => {
    const policies = [tokenBucket({ limit: 1, window: '1d', capacity, refill: 'interval' })]
    const limiter = createLimiter({
      name: 'far',
      policies,
      store: open(),
      onStoreError: 'throw',
      deadline: '10s',
    })
    expect((await limiter.consume('a', { cost: capacity })).allowed).toBe(true)
    expect((await limiter.consume('a')).allowed).toBe(false)
  })
})

describe('the table', () => {
  it('is made by the store, unlogged, with one index', async () => {
    await open({ table: 'made' }).ready()
    expect(
      await rows(`select relpersistence, reloptions, (select count(*)::int from pg_index where indrelid = oid) as indexes
        from pg_class where relname = 'made'`),
    ).toEqual([{ relpersistence: 'u', reloptions: ['fillfactor=80'], indexes: 1 }])
  })

  it('is made once where many stores make it at the same moment', async () => {
    const many = Array.from({ length: 8 }, () => open({ table: 'at_once' }, own.open()))
    await Promise.all(many.map((store) => store.ready()))
    expect((await limiterOn(many[0]!).consume('a')).remaining).toBe(4)
  })

  it('is logged if that is asked for, and may lie in a schema', async () => {
    await own.pool.query('create schema "Other"')
    await open({ schema: 'Other', table: 'Kept', logged: true }).ready()
    expect(await rows(`select relpersistence from pg_class where relname = 'Kept'`)).toEqual([
      { relpersistence: 'p' },
    ])
  })

  it('is warned of where budgets are kept in it and it is unlogged', async () => {
    const policies = [calendarWindow({ limit: 5, every: 'month', timeZone: 'Europe/Berlin' })]
    const budgetIn = (store: PostgresStore) =>
      createLimiter({ name: 'budget', policies, store, onStoreError: 'throw', deadline: '10s' })
    const logged = budgetIn(open({ logged: true }))
    expect((await logged.consume('a', { cost: 5 })).remaining).toBe(0)
    expect((await logged.consume('a')).allowed).toBe(false)
    expectWarnings(['STORE_FORGETS'])
    expect((await budgetIn(open()).consume('a')).remaining).toBe(4)
  })

  it('is made by a migration', async () => {
    await own.pool.query(postgresSchema({ table: 'migrated' }))
    const limiter = limiterOn(open({ table: 'migrated', createTable: false }))
    expect((await limiter.consume('a')).remaining).toBe(4)
  })

  it('is an error if it is missing and must not be made', async () => {
    const store = open({ table: 'missing', createTable: false })
    const error = { code: 'STORE_ERROR', message: expect.stringContaining('postgresSchema()') }
    await expect(store.ready()).rejects.toMatchObject(error)
    await expect(limiterOn(store).consume('a')).rejects.toMatchObject({ ...error, sent: false })
    await own.pool.query(postgresSchema({ table: 'missing' }))
    expect((await limiterOn(store).consume('a')).remaining).toBe(4)
  })

  it('is an error if another has its name', async () => {
    await own.pool.query('create table other_shape (id text primary key, value int)')
    await expect(open({ table: 'other_shape' }).ready()).rejects.toMatchObject({
      code: 'STORE_ERROR',
      message: expect.stringMatching(/must have the columns expires bigint.*, it has id text, value integer/),
    })
  })

  it('is an error if it is unlogged and must outlive a crash', async () => {
    await open({ table: 'lossy' }).ready()
    await expect(open({ table: 'lossy', logged: true }).ready()).rejects.toThrow('is unlogged')
  })

  it('is made again after it was dropped', async () => {
    const limiter = limiterOn(open({ table: 'dropped' }))
    await limiter.consume('a')
    await own.pool.query('drop table dropped')
    await expect(limiter.consume('a')).rejects.toMatchObject({ code: 'STORE_ERROR', sent: false })
    expect((await limiter.consume('a')).remaining).toBe(4)
  })

  it('keeps a gcra in 80 bytes, and updates it in place', async () => {
    const limiter = createLimiter({
      name: 'x',
      policies: [gcra({ limit: 1000, window: '1d' })],
      store: open({ table: 'small' }),
    })
    for (let i = 0; i < 20; i++) await limiter.consume('a')
    const [row] = await rows('select count(*)::int, max(length(state)) as bytes from small')
    expect(row!['count']).toBe(2) // with the row that marks the table
    expect(row!['bytes']).toBeLessThanOrEqual(80)
  })
})

describe('a row that no other process writes', () => {
  afterEach(() => jest.restoreAllMocks())

  /** A store that counts its statements, and a limiter on it. */
  const counted = async (table: string, options: PostgresStoreOptions = {}) => {
    const pool = own.open()
    const statements: string[] = []
    const query = pool.query.bind(pool) as (statement: { text: string }) => Promise<unknown>
    const counting = (statement: { text: string }) => {
      statements.push(statement.text.split(' ')[0]!)
      return query(statement)
    }
    const made = open({ table, denialCache: false, ...options }, Object.assign(pool, { query: counting }))
    const store = Object.assign(made, { records: undefined }) // which are read once a second
    await store.ready()
    statements.length = 0
    return { limiter: limiterOn(store), seen: () => statements.splice(0).join() }
  }
  const remaining = async ({ limiter }: { limiter: ReturnType<typeof limiterOn> }) =>
    (await limiter.consume('a')).remaining

  it.each([{}, { prepare: true }])('is decided in one statement, %j', async (options) => {
    const one = await counted(`t${++tables}`, options)
    expect([await remaining(one), one.seen()]).toEqual([4, 'select,insert'])
    expect([await remaining(one), one.seen()]).toEqual([3, 'update'])
    expect([await remaining(one), one.seen()]).toEqual([2, 'update'])
  })

  it('is read for a denial and a peek', async () => {
    const one = await counted(`t${++tables}`)
    await one.limiter.consume('a', { cost: 5 })
    one.seen()
    expect([await remaining(one), one.seen()]).toEqual([0, 'select'])
    await one.limiter.refund('a')
    one.seen()
    expect([(await one.limiter.peek('a')).remaining, one.seen()]).toEqual([1, 'select'])
  })

  it('is read after another process has written it, until it no longer does', async () => {
    const [one, other] = [await counted('shared_row'), await counted('shared_row')]
    expect(await remaining(one)).toBe(4)
    expect([await remaining(other), other.seen()]).toEqual([3, 'select,update'])
    one.seen()
    expect([await remaining(one), one.seen()]).toEqual([2, 'update,select,update'])
    expect([await remaining(other), other.seen()]).toEqual([1, 'update,select,update'])
    await other.limiter.refund('a', { cost: 3 })
    expect([await remaining(one), one.seen()]).toEqual([3, 'select,update'])
    expect([await remaining(one), one.seen()]).toEqual([2, 'select,update'])
    expect([await remaining(one), one.seen()]).toEqual([1, 'update'])
  })

  it('is decided in one statement with others, also beside one that is read', async () => {
    const one = await counted(`t${++tables}`)
    const both = () => Promise.all(['a', 'b'].map(async (key) => (await one.limiter.consume(key)).remaining))
    expect([await remaining(one), one.seen()]).toEqual([4, 'select,insert'])
    expect([await both(), one.seen()]).toEqual([[3, 4], 'select,insert'])
    expect([await both(), one.seen()]).toEqual([[2, 3], 'insert'])
    expect([await remaining(one), one.seen()]).toEqual([1, 'update'])
  })

  it('is read again alone where a decision with others wrote nothing, or lost a race', async () => {
    const [one, other] = [await counted('mixed_rows'), await counted('mixed_rows')]
    const keys = ['denied', 'foreign', 'own']
    const all = () => Promise.all(keys.map(async (key) => (await one.limiter.consume(key)).remaining))
    await one.limiter.consume('denied', { cost: 4 })
    expect(await all()).toEqual([0, 4, 4])
    await other.limiter.consume('foreign', { cost: 2 })
    one.seen()
    expect([await all(), one.seen()]).toEqual([[0, 1, 3], 'insert,select,update'])
    expect((await other.limiter.peek('own')).remaining).toBe(3)
  })

  it('is read in a call of several keys', async () => {
    const one = await counted(`t${++tables}`)
    const whole = (cost: number) =>
      consumeAll(['a', 'b'].map((key) => ({ limiter: one.limiter, key, cost: key === 'a' ? cost : 1 })))
    await whole(1)
    one.seen()
    expect([(await whole(3)).allowed, one.seen()]).toEqual([true, 'select,with'])
    expect([(await whole(3)).allowed, one.seen()]).toEqual([false, 'select'])
    expect([await remaining(one), one.seen()]).toEqual([0, 'update'])
  })

  it('is not made anew with others after a crash has emptied the table', async () => {
    const one = await counted('emptied_at_once')
    const both = () => Promise.all(['a', 'b'].map(async (key) => (await one.limiter.consume(key)).remaining))
    await both()
    await own.pool.query('truncate emptied_at_once')
    expect(await both()).toEqual([4, 4])
  })

  it('is not made anew with others where another process has begun the emptied table', async () => {
    const [one, other] = [await counted('begun_anew'), await counted('begun_anew')]
    const both = () => Promise.all(['a', 'b'].map(async (key) => (await one.limiter.consume(key)).remaining))
    await both()
    await own.pool.query('truncate begun_anew')
    expect(await remaining(other)).toBe(4)
    one.seen()
    expect([await both(), one.seen()]).toEqual([[3, 4], 'insert,select,insert'])
  })

  it('is not made anew with others that are read after a crash has emptied the table', async () => {
    const one = await counted('emptied_between')
    const call = async (key: string) => (await one.limiter.consume(key)).remaining
    await Promise.all(['a', 'b'].map(call))
    await own.pool.query('truncate emptied_between')
    one.seen()
    expect([await Promise.all(['a', 'b', 'new'].map(call)), one.seen()]).toEqual([
      [4, 4, 4],
      'select,select,select,insert,select,select,insert,select,insert',
    ])
  })

  it('is not made anew with others after another key was read in the emptied table', async () => {
    const one = await counted('emptied_before')
    const call = async (key: string) => (await one.limiter.consume(key)).remaining
    await Promise.all(['a', 'b'].map(call))
    await own.pool.query('truncate emptied_before')
    expect(await call('new')).toBe(4)
    expect(await Promise.all(['a', 'b'].map(call))).toEqual([4, 4])
  })

  it('is not made anew after a crash has emptied the table', async () => {
    const one = await counted('emptied')
    await one.limiter.consume('a', { cost: 3 })
    await own.pool.query('truncate emptied')
    expect(await remaining(one)).toBe(4)
  })

  it.each([
    [-10_000, 'update,select,update'],
    [500, 'update,select,update'],
    [10_000, 'select,update'],
  ])('is read where a clock was moved by %d ms', async (ms, statements) => {
    const one = await counted(`t${++tables}`)
    await remaining(one)
    one.seen()
    const now = performance.now.bind(performance)
    jest.spyOn(performance, 'now').mockImplementation(() => now() + ms)
    expect([await remaining(one), one.seen()]).toEqual([3, statements])
  })
})

describe('calls of many keys that come together', () => {
  it('find their rows by the index, also in a table of a few pages whose rows Postgres has counted', async () => {
    const table = `t${++tables}`
    const sent: [text: string, values: readonly string[]][] = []
    const counting = {
      totalCount: 0,
      query: (asked: { text: string; values: string[] }) => {
        sent.push([asked.text, asked.values])
        return own.pool.query(asked)
      },
    }
    const store = open({ table }, counting)
    await store.ready()
    await own.pool
      .query(`insert into ${table} select gen_random_uuid(), 1, 9007199254740992, decode(repeat('ab', 60), 'hex')
      from generate_series(1, 500)`)
    await own.pool.query(`analyze ${table}`)
    sent.length = 0
    const limiter = limiterOn(store)
    await Promise.all(Array.from({ length: 64 }, (_, key) => limiter.consume(`${key}`)))
    const [text, values] = sent[0]!
    const { rows: plan } = await own.pool.query(`explain ${text}`, [...values])
    expect(JSON.stringify(plan)).toMatch(/Index Scan/)
    expect(JSON.stringify(plan)).not.toMatch(/Seq Scan/)
  })
})

it('takes a clock whose instants are not whole', async () => {
  const store = open({ clock: () => 1_800_000_000_000_000.25 })
  expect((await limiterOn(store).consume('a')).allowed).toBe(true)
  const semaphore = createSemaphore({ name: 'fractions', limit: 1, store, deadline: '10s' })
  const permit = await semaphore.acquire('a')
  expect(permit.allowed).toBe(true)
  await permit.release()
})

it('may be closed twice, also while its package is loaded', async () => {
  const store = postgresStore(own.server.url, { table: 'closing' })
  const ready = store.ready()
  await store.close()
  await expect(ready).rejects.toThrow('Postgres did not decide')
  await expect(store.close()).resolves.toBeUndefined()
})

it('keeps the row of permits for the longest lease in it', async () => {
  const [now, table] = [1_800_000_000_000_000, 'leased']
  const store = open({ clock: () => now, table })
  for (const lease of ['1h', '10s'] as const) {
    const semaphore = createSemaphore({ name: 'leased', limit: 2, lease, store, deadline: '10s' })
    expect((await semaphore.acquire('a')).allowed).toBe(true)
  }
  const [row] = await rows(`select expires from ${table} where expires > 0`)
  expect(Number(row!['expires'])).toBeGreaterThan(now + 3_600_000_000)
})

describe('a role without rights', () => {
  beforeAll(() =>
    own.pool.query(
      'create role weak login; create role user_of login; revoke create on schema public from public',
    ),
  )
  const as = (role: string) => own.open(own.server.url.replace('postgres@', `${role}@`))

  it('gets one clear error', async () => {
    await expect(open({ table: 'not_mine' }, as('weak')).ready()).rejects.toMatchObject({
      code: 'STORE_FORBIDDEN',
      message: expect.stringMatching(/permission denied for schema public.*needs select, insert/),
      sent: false,
    })
  })

  it('needs four rights on a table that is there', async () => {
    await own.pool.query(postgresSchema({ table: 'granted' }))
    await own.pool.query('grant select, insert, update, delete on granted to user_of')
    expect((await limiterOn(open({ table: 'granted' }, as('user_of'))).consume('a')).remaining).toBe(4)
    await expect(limiterOn(open({ table: 'granted' }, as('weak'))).consume('a')).rejects.toMatchObject({
      code: 'STORE_FORBIDDEN',
      sent: false,
    })
  })
})

describe('a client', () => {
  it('may be a pool of pg, or a client of postgres', async () => {
    const client = own.open()
    const sql = postgres(own.server.url, { prepare: false })
    const table = `t${++tables}`
    expect((await limiterOn(open({ table }, client)).consume('a')).remaining).toBe(4)
    expect((await limiterOn(open({ table, prepare: true }, sql)).consume('a')).remaining).toBe(3)
    expect((await limiterOn(open({ table, prepare: true })).consume('a')).remaining).toBe(2)
    expect((await limiterOn(open({ prepare: true })).consume('a')).remaining).toBe(4)
    expect((await limiterOn(open({ prepare: true })).consume('a')).remaining).toBe(4)
    await sql.end()
  })

  it('stays open when the store is closed, and listens no more', async () => {
    const pool = own.open()
    const listeners = pool.listenerCount('error')
    const store = open({}, pool)
    expect(pool.listenerCount('error')).toBe(listeners + 1)
    await store.ready()
    await store.close()
    expect(pool.listenerCount('error')).toBe(listeners)
    expect((await pool.query('select 1 as one')).rows).toEqual([{ one: 1 }])
  })

  it('is made from a URL, and ended with the store', async () => {
    const store = open({ table: 'by_url' }, own.server.url)
    expect((await limiterOn(store).consume('a')).remaining).toBe(4)
    expect(store.endpoint).toBe(`127.0.0.1:${own.server.port}`)
    await store.close()
    await expect(store.ready()).rejects.toMatchObject({ code: 'CLOSED' })
    const others = `select count(*)::int from pg_stat_activity where query like '%by_url%' and pid <> pg_backend_pid()`
    await until('its connections are gone', async () => (await rows(others))[0]!['count'] === 0)
  })

  it.each([
    ['an object', {}, 'an object'],
    ['a promise', Promise.resolve(), 'an object'],
    ['a URL of another database', 'mysql://root:secret@localhost', 'postgres://'],
    ['nothing', undefined, 'undefined'],
  ])('is not %s', (_, client, message) => {
    const make = () => postgresStore(client as never)
    expect(make).toThrow(message)
    expect(make).not.toThrow('secret')
  })

  it('of postgres that prepares statements is warned of once', async () => {
    const sql = postgres(own.server.url, { max: 1 })
    const warnings: unknown[] = []
    const keyspaces = [open({}, sql), open({}, sql)].map((store) =>
      store.keyspace('x', [gcra({ limit: 5, window: '1d' })], (notice) => warnings.push(notice)),
    )
    expect(keyspaces).toHaveLength(2)
    expect(warnings).toMatchObject([{ event: 'warning', code: 'POSTGRES_PREPARES' }])
    await sql.end()
  })
})

it('refuses a table name that would need quotes, and unknown options', () => {
  expect(() => open({ table: 'a"b' })).toThrow('table must be a name of letters')
  expect(() => open({ prefix: 'x' } as never)).toThrow("there is no option 'prefix' of postgresStore")
})

it('decides the first call of a process, and calls of several limiters, with one table', async () => {
  const store = open({ table: 'first' })
  const calls = ['a', 'b', 'c'].map((key) => limiterOn(store).consume(key))
  const other = createLimiter({ name: 'y', policies: [slidingWindow({ limit: 2, window: '1m' })], store })
  const decisions = await Promise.all([...calls, other.consume('a')])
  expect(decisions.map(({ remaining, degraded }) => [remaining, degraded])).toEqual([
    [4, undefined],
    [4, undefined],
    [4, undefined],
    [1, undefined],
  ])
})

it('shares permits through PgBouncer, first come, first served', async () => {
  const bouncer = await startPgBouncer(own.server)
  const table = `t${++tables}`
  const semaphores = [1, 2].map(() =>
    createSemaphore({ name: 's', limit: 1, store: open({ table }, own.open(bouncer.url)) }),
  )
  const first = await semaphores[0]!.acquire('a')
  let isServed = false
  const second = semaphores[1]!.acquire('a', { maxWait: '10s' }).then((permit) => {
    isServed = true
    return permit
  })
  await pause(300)
  expect(isServed).toBe(false)
  await first.release()
  await (await second).release()
  await Promise.all(semaphores.map((semaphore) => semaphore.close()))
  await bouncer.stop()
})

describe('the sweep', () => {
  it('deletes what expired a minute ago, slice by slice, and passes over what is locked', async () => {
    await own.pool.query(postgresSchema({ table: 'swept' }))
    const fill = `insert into swept select gen_random_uuid(), 1, case when n % 2 = 0 then 10 else 60000000 end,
      decode(repeat('ab', 60), 'hex') from generate_series(1, 3000) n`
    await own.pool.query(fill)
    const locker = new Client({ connectionString: own.server.url })
    await locker.connect()
    await locker.query('begin; select 1 from swept where expires = 10 limit 1 for update')
    const database = {
      endpoint: undefined,
      prepares: false,
      query: async ({ text }: { text: string }, values: readonly string[]) =>
        (await own.pool.query(text, [...values])).rows.map(({ row }) => row.slice(1).split('|')) as never,
      close: async () => {},
    }
    const sweep = new Sweep(database, { table: 'swept', options: { clock: () => 60_000_011 } })
    const gone: number[] = []
    for (let i = 0; i < 10; i++) gone.push(await sweep.slice())
    expect(Math.max(...gone)).toBeLessThanOrEqual(1000)
    expect(await rows('select expires::int, count(*)::int from swept group by 1 order by 1')).toEqual([
      { expires: 10, count: 1 },
      { expires: 60_000_000, count: 1500 },
    ])
    await locker.query('rollback')
    await locker.end()
  })

  it('goes by the clock as it is, not by what an idle process heard before that was set back', async () => {
    let now = 86_400_000_000
    const database = databaseOf(own.pool, false)
    const options = { schema: undefined, table: 'back', logged: false, createTable: true, clock: () => now }
    const [idle, busy] = [new StateRows(database, options), new StateRows(database, options)]
    const write = (rows: StateRows) =>
      rows.updateMany(['a'], () => [{ state: Buffer.alloc(1), expiresAt: now + 10_000_000 }], {
        allOrNone: false,
      })
    await write(idle)
    now -= 1_800_000_000
    await write(busy)
    expect(await new Sweep(database, idle).slice()).toBe(0)
    now += 1_800_000_000
    expect(await new Sweep(database, idle).slice()).toBe(1)
  })
})
