import { consumeAll, createLimiter, createSemaphore, gcra } from '@sluice/core'
import { postgresSchema, type PostgresStore, postgresStore } from '@sluice/postgres'
import type { Pool } from 'pg'
import { onePostgres } from './one-postgres.js'

const own = onePostgres()
const stores: PostgresStore[] = []
afterEach(() => Promise.all(stores.splice(0).map((store) => store.close())))

/** Statements that one call may cost where its row is dropped: a read and a write of each time it is tried. */
const MOST = 620
let tables = 0

/** A store on a table, and how many statements it has sent. */
const count = (pool: Pool, table: string) => {
  const [query, seen] = [pool.query.bind(pool) as (statement: object) => Promise<unknown>, { statements: 0 }]
  const counting = (statement: object) => {
    if (++seen.statements > 4 * MOST) throw new Error('asks without end')
    return query(statement)
  }
  const store = postgresStore(Object.assign(pool, { query: counting }), { table })
  stores.push(store)
  const policies = [gcra({ limit: 5, window: '1d', burst: 5 })]
  const limiter = createLimiter({ name: 'x', policies, store, onStoreError: 'throw', deadline: '20s' })
  return { store, limiter, seen }
}

/** The same on a table of its own, and what spoils it: `sql`, in which T stands for the table. */
const open = async (sql: string) => {
  const table = `dropped_${++tables}`
  await own.pool.query(postgresSchema({ table }))
  const spoil = () => own.pool.query(sql.replaceAll(/\bT\b|(?<=_)T\b/g, table))
  return { ...count(own.open(), table), spoil }
}

const DROP = `create function drop_T() returns trigger language plpgsql as 'begin return null; end';`
const SPOILS = {
  'a trigger that drops new rows': `${DROP} create trigger t before insert on T for each row execute function drop_T()`,
  'a trigger that drops changes': `${DROP} create trigger t before insert or update on T for each row execute function drop_T()`,
  'a trigger that changes versions': `create function change_T() returns trigger language plpgsql as
    'begin new.version := 7; return new; end'; create trigger t before insert or update on T for each row execute function change_T()`,
}

describe.each(Object.entries(SPOILS))('%s', (_, sql) => {
  const expected = { code: 'STORE_ERROR', message: expect.stringMatching(/trigger/) }

  it('ends a call on one key with an error', async () => {
    const { limiter, seen, spoil } = await open(sql)
    await limiter.peek('a')
    await spoil()
    await expect(limiter.consume('a')).rejects.toMatchObject({ ...expected, sent: /version/.test(sql) })
    expect(seen.statements).toBeLessThanOrEqual(MOST)
  })

  it('ends a call on several keys with an error', async () => {
    const { limiter, seen, spoil } = await open(sql)
    await limiter.peek('a')
    await spoil()
    const parts = ['a', 'b'].map((key) => ({ limiter, key }))
    await expect(consumeAll(parts)).rejects.toMatchObject(expected)
    expect(seen.statements).toBeLessThanOrEqual(MOST)
  })

  it('ends a correction, which has no deadline, and a permit with an error', async () => {
    const { store, limiter, seen, spoil } = await open(sql)
    await limiter.peek('a')
    await spoil()
    await expect(limiter.charge('a')).rejects.toMatchObject(expected)
    const semaphore = createSemaphore({ name: 's', limit: 1, store, deadline: '20s' })
    await expect(semaphore.acquire('a', { maxWait: 0 })).rejects.toMatchObject(expected)
    expect(seen.statements).toBeLessThanOrEqual(2 * MOST)
    await semaphore.close()
  })
})

it.each([
  [
    'a trigger drops',
    `${DROP} create trigger t before insert on T for each row execute function drop_T()`,
    'STORE_ERROR',
    /trigger/,
  ],
  [
    'row security hides',
    `insert into T values ('00000000-0000-0000-0000-000000000000', 1, 9223372036854775807, '');
     create role reader_T login; alter table T owner to reader_T; alter table T enable row level security;
     alter table T force row level security; create policy p on T using (state <> '') with check (true)`,
    'STORE_FORBIDDEN',
    /row-level security/,
  ],
  ['a rule drops', `create rule r as on insert to T do instead nothing`, 'STORE_ERROR', /rule/],
])('a mark that %s is an error of the set-up', async (_, sql, code, message) => {
  const table = `dropped_${++tables}`
  await own.pool.query(postgresSchema({ table }))
  await own.pool.query(sql.replaceAll(/\bT\b|(?<=_)T\b/g, table))
  const role = sql.includes('role') ? `reader_${table}` : 'postgres'
  const { store, limiter, seen } = count(own.open(own.server.url.replace('postgres@', `${role}@`)), table)
  const error = { code, message: expect.stringMatching(message) }
  await expect(store.ready()).rejects.toMatchObject(error)
  await expect(limiter.consume('a')).rejects.toMatchObject(error)
  expect(seen.statements).toBeLessThanOrEqual(MOST)
})

it('a rule that comes later is an error that names it', async () => {
  const { limiter, seen, spoil } = await open('create rule r as on update to T do instead nothing')
  await limiter.consume('a')
  await spoil()
  await expect(limiter.consume('a')).rejects.toMatchObject({ code: 'STORE_ERROR', sent: false })
  await expect(limiter.consume('a')).rejects.toMatchObject({
    code: 'STORE_ERROR',
    message: expect.stringMatching(/rule/),
  })
  expect(seen.statements).toBeLessThanOrEqual(20)
})
