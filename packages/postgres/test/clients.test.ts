import { createLimiter, gcra } from '@sluice/core'
import { type PostgresStore, postgresStore } from '@sluice/postgres'
import { Client, Pool, types } from 'pg'
import postgres from 'postgres'
import { sqlState, storeError } from '../src/failure.js'
import { onePostgres } from './one-postgres.js'

const own = onePostgres()
const stores: PostgresStore[] = []
afterEach(() => Promise.all(stores.splice(0).map((store) => store.close())))

let tables = 0
const limiterOn = (client: Parameters<typeof postgresStore>[0], limit = 50) => {
  const store = postgresStore(client, { table: `clients_${++tables}` })
  stores.push(store)
  const policies = [gcra({ limit, window: '1d', burst: limit })]
  return createLimiter({ name: 'x', policies, store, onStoreError: 'throw', deadline: '10s' })
}

describe('a single connection', () => {
  const expectRefused = (connection: unknown, advice: RegExp) => {
    const make = () => postgresStore(connection as never)
    expect(make).toThrow(expect.objectContaining({ name: 'PolicyError', code: 'INVALID_OPTION' }))
    expect(make).toThrow(advice)
  }

  it('of pg is refused, and the error says what to write', async () => {
    const client = new Client({ connectionString: own.server.url })
    expectRefused(client, /single connection.*new Pool\(/s)
    await client.connect()
    expectRefused(client, /single connection.*new Pool\(/s)
    await client.end()
  })

  it('of pg is refused that a pool has lent, also one in a transaction', async () => {
    const client = await own.pool.connect()
    await client.query('begin')
    expectRefused(client, /single connection.*new Pool\(/s)
    await client.query('rollback')
    client.release()
  })

  it('of postgres is refused: one that is reserved, a transaction, and a savepoint in it', async () => {
    const sql = postgres(own.server.url, { prepare: false, max: 1 })
    const reserved = await sql.reserve()
    expectRefused(reserved, /single connection.*postgres\(/s)
    reserved.release()
    await sql.begin(async (transaction) => {
      expectRefused(transaction, /single connection.*postgres\(/s)
      await transaction.savepoint(async (inner) => expectRefused(inner, /single connection.*postgres\(/s))
    })
    await sql.end()
  })

  it('of Bun.SQL is refused, whose reserved connections and transactions have the methods of a pool', () => {
    const handle = Object.assign(() => {}, { unsafe() {}, begin() {}, end() {}, options: {} })
    expectRefused(Object.assign(handle, { release() {} }), /single connection/)
    expectRefused(Object.assign(handle, { release: undefined, savepoint() {} }), /single connection/)
  })
})

describe('a pool', () => {
  it('of one connection decides beside the transactions of the application, and outlives the end of its backend', async () => {
    const pool = own.open(own.server.url, 1)
    const limiter = limiterOn(pool, 5)
    const client = await pool.connect()
    await client.query('begin')
    const decided = limiter.consume('a')
    await client.query('rollback')
    client.release()
    expect((await decided).remaining).toBe(4)
    await own.pool.query(
      'select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()',
    )
    await limiter.consume('a').catch(() => {})
    expect((await limiter.consume('a')).allowed).toBe(true)
  })

  it.each([
    ['a parser of text', { getTypeParser: () => (value: string) => JSON.stringify([value]) }],
    ['a parser that makes numbers', { getTypeParser: () => Number }],
    ['a parser that throws', { getTypeParser: () => JSON.parse }],
  ])('decides with %s of its own', async (_, ownTypes) => {
    const pool = new Pool({ connectionString: own.server.url, types: ownTypes })
    const limiter = limiterOn(pool)
    expect((await limiter.consume('a')).remaining).toBe(49)
    expect((await limiter.consume('a', { cost: 9 })).remaining).toBe(40)
    await pool.end()
  })

  it('decides where every pool of the process has a parser of text', async () => {
    const usual = types.getTypeParser(25)
    types.setTypeParser(25, (value) => JSON.parse(value))
    try {
      expect((await limiterOn(own.pool).consume('a')).remaining).toBe(49)
    } finally {
      types.setTypeParser(25, usual as never)
    }
  })

  it('decides with results in binary', async () => {
    const pool = new Pool({ connectionString: own.server.url, binary: true } as never)
    const limiter = limiterOn(pool)
    expect((await limiter.consume('a')).remaining).toBe(49)
    expect((await limiter.consume('a')).remaining).toBe(48)
    await pool.end()
  })
})

describe('a client of postgres', () => {
  const number = (value: unknown) => (/^\d+$/.test(String(value)) ? Number(value) : value)
  const each = (row: object) =>
    Object.fromEntries(Object.entries(row).map(([name, value]) => [name, number(value)]))

  it.each<[string, NonNullable<Parameters<typeof postgres>[1]>]>([
    ['a transform that makes numbers of digits', { transform: { value: { from: number } } }],
    ['a transform of rows that makes numbers of digits', { transform: { row: { from: each } } }],
    ['a transform that names columns in another case', { transform: postgres.pascal }],
    [
      'a transform that makes values of empty texts',
      { transform: { value: { from: (value: unknown) => value || undefined } } },
    ],
    ['a parser of text', { types: { own: { to: 25, from: [25], serialize: String, parse: () => 'own' } } }],
  ])('decides with %s', async (_, options) => {
    const sql = postgres(own.server.url, { prepare: false, max: 4, ...options })
    const limiter = limiterOn(sql)
    expect((await limiter.consume('a')).remaining).toBe(49)
    expect((await limiter.consume('a', { cost: 9 })).remaining).toBe(40)
    await Promise.all(Array.from({ length: 60 }, () => limiter.consume('b')))
    expect((await limiter.peek('b')).remaining).toBe(0)
    await sql.end()
  })
})

it.each([
  ['pg and postgres', { code: '42P01', severity: 'ERROR', message: 'no table' }],
  ['Bun.SQL', { code: 'ERR_POSTGRES_SERVER_ERROR', errno: '42P01', severity: 'ERROR', message: 'no table' }],
])('reads the SQLSTATE of an error of %s', (_, error) => {
  expect(sqlState(error)).toBe('42P01')
  expect(storeError(error, true)).toMatchObject({ code: 'STORE_ERROR', sent: false })
})
