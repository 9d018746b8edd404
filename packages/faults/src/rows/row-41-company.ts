import { consumeAll, createLimiter, gcra, type SluiceError } from '@sluice/core'
import type { PostgresServer } from '@sluice/harness/postgres'
import { postgresSchema, type PostgresStore, postgresStore } from '@sluice/postgres'
import { until } from '@sluice/harness/redis'
import { Pool } from 'pg'
import postgres from 'postgres'
import { together } from '../outage.js'
import type { Outcome } from '../row.js'

/*
 * A store among what an application does with its clients, its sessions and its tables: parsers, transforms, search paths, isolation,
 * triggers, single connections. Row 41.
 */

const LIMIT = 10
/** Of the row that marks a table. */
const NO_ID = `'00000000-0000-0000-0000-000000000000'`

/** Lets a store share a Postgres with an application in each of six ways. Passes if its limits hold and every call ends. */
export async function keepCompany(server: PostgresServer): Promise<Outcome> {
  return together([
    await startTogether(server),
    await differInPath(server),
    await loseRows(server),
    await travelApart(server),
    await parse(server),
    await refuseSingle(server),
  ])
}

function limiterOn(store: PostgresStore, name = 'company') {
  const policies = [gcra({ limit: LIMIT, window: '1d', burst: LIMIT })]
  return createLimiter({ name, policies, store, deadline: '5s', onStoreError: 'throw' })
}

/** A pool whose sessions run one of these statements first, each the next of the list. */
function poolOf(server: PostgresServer, settings: readonly string[], max: number): Pool {
  const pool = new Pool({ connectionString: server.url, max })
  pool.on('error', () => {})
  let opened = 0
  pool.on('connect', (client) => void client.query(settings[opened++ % settings.length]!).catch(() => {}))
  return pool
}

/** Runs statements on a connection of its own. */
async function run(server: PostgresServer, sql: string): Promise<readonly Record<string, string>[]> {
  const pool = new Pool({ connectionString: server.url, max: 1 })
  try {
    return (await pool.query<Record<string, string>>(sql)).rows
  } finally {
    await pool.end()
  }
}

/**
 * 480 stores start at once where sessions are under repeatable read, while another one marks the table, which they wait for and then
 * lose the race: none is refused.
 */
async function startTogether(server: PostgresServer): Promise<Outcome> {
  await run(server, postgresSchema({ table: 'started' }))
  const pool = poolOf(server, [`set default_transaction_isolation = 'repeatable read'`], 40)
  pool.setMaxListeners(0)
  const other = new Pool({ connectionString: server.url, max: 1 })
  await other.query(`begin; insert into started values (${NO_ID}, 1, 9223372036854775807, '')`)
  const stores = Array.from({ length: 480 }, () => postgresStore(pool, { table: 'started' }))
  const started = Promise.allSettled(stores.map((store) => store.ready()))
  const waiting = `select count(*)::int as n from pg_stat_activity where wait_event_type = 'Lock'`
  await until('stores to wait', async () => Number((await run(server, waiting))[0]!['n']) > 10)
  await other.query('commit')
  const outcomes = await started
  await other.end()
  await Promise.all(stores.map((store) => store.close()))
  await pool.end()
  const refused = outcomes.filter(({ status }) => status === 'rejected').length
  return { pass: refused === 0, figure: `480 stores start under repeatable read: ${refused} refused` }
}

/** Sessions that differ in search_path: one table, made again where it was, an exact limit, one warning. */
async function differInPath(server: PostgresServer): Promise<Outcome> {
  await run(server, 'create schema one; create schema two')
  const pool = poolOf(server, ['set search_path = one', 'set search_path = two'], 2)
  const store = postgresStore(pool, { table: 'paths', denialCache: false })
  const limiter = limiterOn(store)
  let warnings = 0
  limiter.on('warning', () => warnings++)
  const spend = async (): Promise<number> => {
    let admitted = 0
    // One of the two sessions is taken in every other round.
    for (let round = 0; round < 2 * LIMIT; round++) {
      const held = round % 2 ? await pool.connect() : undefined
      if ((await limiter.consume('a')).allowed) admitted++
      held?.release()
    }
    return admitted
  }
  try {
    const first = await spend()
    await run(server, `do $$ begin drop table if exists one.paths; drop table if exists two.paths; end $$`)
    const held = await pool.connect()
    await limiter.consume('a').catch(() => {})
    const again = limiter.consume('a')
    held.release()
    const second = ((await again).allowed ? 1 : 0) + (await spend())
    const found = await run(server, `select relname from pg_class where relname = 'paths' and relkind = 'r'`)
    const pass = first === LIMIT && second === LIMIT && found.length === 1 && warnings === 1
    const figure = `two search paths: ${first} and ${second} of ${LIMIT} admitted, ${found.length} table, ${warnings} warning`
    return { pass, figure }
  } finally {
    await store.close()
    await pool.end()
  }
}

const TRIGGER = `create function spoil_TABLE() returns trigger language plpgsql as $$ begin BODY end $$;
  create trigger spoil before insert or update on TABLE for each row execute function spoil_TABLE()`

/** Triggers that drop or change what is written: each call ends with an error, after a bounded number of statements. */
async function loseRows(server: PostgresServer): Promise<Outcome> {
  const seen: string[] = []
  for (const [table, body] of [
    ['dropped', 'return null;'],
    ['changed', 'new.version := 7; return new;'],
  ] as const) {
    const pool = new Pool({ connectionString: server.url, max: 4 })
    let statements = 0
    const query = pool.query.bind(pool) as (statement: object) => Promise<unknown>
    const counting = (statement: object): Promise<unknown> => {
      if (++statements > 2000) throw new Error('asks without end')
      return query(statement)
    }
    const store = postgresStore(Object.assign(pool, { query: counting }), { table, denialCache: false })
    const limiter = limiterOn(store)
    await limiter.consume('a')
    await run(server, TRIGGER.replaceAll('TABLE', table).replace('BODY', body))
    for (const key of ['a', 'new']) {
      const code = await limiter.consume(key).then(
        () => 'decided',
        (error: SluiceError) => error.code,
      )
      seen.push(`${code}${/without end/.test(code) || statements > 1500 ? ' without end' : ''}`)
    }
    await store.close()
    await pool.end()
  }
  const pass = seen.every((each) => each === 'STORE_ERROR')
  return { pass, figure: `triggers that drop or change rows: ${seen.join()}` }
}

/** A call on several keys loses its races for seconds: calls on one key that meet it are decided by the store in time. */
async function travelApart(server: PostgresServer): Promise<Outcome> {
  const pool = new Pool({ connectionString: server.url, max: 4 })
  const store = postgresStore(pool, { table: 'apart', denialCache: false })
  const limiter = limiterOn(store)
  const single = createLimiter({
    name: 'single',
    policies: [gcra({ limit: LIMIT, window: '1d', burst: LIMIT })],
    store,
    deadline: '1s',
    onStoreError: 'deny',
  })
  try {
    const parts = ['x', 'y'].map((key) => ({ limiter, key }))
    await consumeAll(parts)
    // Rows of the whole that are written after this are dropped late, as where another process is always faster.
    const body = `if new.id in (select id from shunned) then perform pg_sleep(0.02); return null; end if; return new;`
    await run(server, `create table shunned as select id from apart where state <> ''`)
    await run(server, TRIGGER.replaceAll('TABLE', 'apart').replace('BODY', body))
    const whole = consumeAll(parts).catch((error: SluiceError) => error.code)
    const calls = await Promise.all(Array.from({ length: 20 }, (_, key) => single.consume(`${key}`)))
    const missed = calls.filter(({ degraded }) => degraded !== undefined).length
    await whole
    return { pass: missed === 0, figure: `beside a whole that loses its races: ${missed} of 20 calls missed` }
  } finally {
    await store.close()
    await pool.end()
  }
}

/** Parsers, a transform and a setting of the application's, on its clients: each admits the limit exactly. */
async function parse(server: PostgresServer): Promise<Outcome> {
  const number = (value: unknown): unknown => (/^\d+$/.test(String(value)) ? Number(value) : value)
  const sql = postgres(server.url, { prepare: false, max: 4, transform: { value: { from: number } } })
  const types = { getTypeParser: () => JSON.parse } as never
  const parsing = new Pool({ connectionString: server.url, types })
  const withoutNulls = poolOf(server, ['set array_nulls = off'], 4)
  const admitted: string[] = []
  for (const [nth, client] of [sql, parsing, withoutNulls].entries()) {
    const store = postgresStore(client, { table: `parsed_${nth}`, denialCache: false })
    const limiter = limiterOn(store)
    const calls = Array.from({ length: 2 * LIMIT }, async () => (await limiter.consume('a')).allowed)
    const decided = await Promise.all(calls).catch((error: SluiceError) => error.code)
    admitted.push(Array.isArray(decided) ? `${decided.filter(Boolean).length}` : String(decided))
    await store.close()
  }
  await Promise.all([sql.end(), parsing.end(), withoutNulls.end()])
  const pass = admitted.every((each) => each === `${LIMIT}`)
  return { pass, figure: `a transform, a parser, array_nulls off: ${admitted.join()} of ${LIMIT} admitted` }
}

/** A connection that a pool has lent, and a transaction of postgres, are refused: what they decide would be taken back. */
async function refuseSingle(server: PostgresServer): Promise<Outcome> {
  const pool = new Pool({ connectionString: server.url, max: 1 })
  const sql = postgres(server.url, { prepare: false, max: 1 })
  const codeOf = (client: unknown): string => {
    try {
      void postgresStore(client as Pool).close()
      return 'taken'
    } catch (error) {
      return (error as SluiceError).code
    }
  }
  const client = await pool.connect()
  const codes = [codeOf(client)]
  client.release()
  await sql.begin((transaction) => void codes.push(codeOf(transaction)))
  await Promise.all([pool.end(), sql.end()])
  const pass = codes.every((code) => code === 'INVALID_OPTION')
  return { pass, figure: `single connections: ${codes.join()}` }
}
