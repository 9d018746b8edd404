import { resolve } from 'node:path'
import { createLimiter, gcra } from '@sluice/core'
import { type PostgresServer, startPgBouncer, startPostgres } from '@sluice/harness/postgres'
import { until } from '@sluice/harness/redis'
import { postgresStore } from '@sluice/postgres'
import { Pool } from 'pg'
import { type Member, startMember } from '../fleet.js'
import { sitOut, together } from '../outage.js'
import type { Outcome, Row } from '../row.js'
import type { PostgresJob, PostgresResult } from '../workers/postgres-caller.js'
import { keepCompany } from './row-41-company.js'
import { hinder } from './row-41-hindered.js'

/** Postgres is raced for, stops, dies, is replaced by its standby, and is kept from deciding by what others do to it. */
export const row: Row = {
  number: 41,
  fault: 'Postgres',
  timed: true,
  warnings: ['STORE_DEGRADED', 'STORE_RECOVERED'],
  run: share,
}

const ENTRY = 'packages/faults/src/workers/postgres-caller.ts'
const LIMIT = 1000

/**
 * Runs every trial of postgresStore: races, outages, a failover, and whatever can hinder it. Skipped without a Postgres.
 * `part` is the part of the full load, 0 to 1.
 */
async function share(part: number): Promise<Outcome> {
  const server = await startPostgres().catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'NO_POSTGRES') return error.message
    throw error
  })
  if (typeof server === 'string') return { pass: true, figure: `skipped: ${server}` }
  try {
    const lastsMs = Math.max(500, 2000 * part)
    const outcomes = [
      await race(server, Math.max(1, Math.round(3 * part))),
      await outlast(server, { title: 'stopped', logged: false, lastsMs }),
      await outlast(server, { title: 'killed', logged: false, lastsMs }),
      await outlast(server, { title: 'killed', logged: true, lastsMs }),
      await promote(server),
      await hinder(server),
      await keepCompany(server),
      await returnBehindPgBouncer(server, lastsMs),
    ]
    return together(outcomes)
  } finally {
    await server.stop()
  }
}

/**
 * Lets four processes race for a key, directly and through PgBouncer in transaction mode. Passes if the limit is exact each
 * time.
 */
async function race(server: PostgresServer, runs: number): Promise<Outcome> {
  const members = await Promise.all(Array.from({ length: 4 }, () => startMember(ENTRY, resolve('.'))))
  const bouncer = await startPgBouncer(server)
  let exact = 0
  try {
    for (const url of [server.url, bouncer.url]) {
      for (let run = 0; run < runs; run++) {
        const job: PostgresJob = { url, key: `${url} ${run}`, limit: LIMIT, calls: 500 }
        const results = await all(members, job)
        const admitted = results.reduce((sum, result) => sum + result.admitted, 0)
        if (admitted === LIMIT && results.every(({ degraded }) => degraded === 0)) exact++
      }
    }
  } finally {
    await bouncer.stop()
    await Promise.all(members.map((member) => member.end()))
  }
  const figure = `4 processes race, half of it through PgBouncer: exactly ${LIMIT} admitted in ${exact} of ${2 * runs}`
  return { pass: exact === 2 * runs, figure }
}

/** Gives all processes one job and lets them begin at the same moment, when all are ready. Returns their results. */
async function all(members: readonly Member[], job: PostgresJob): Promise<PostgresResult[]> {
  await Promise.all(members.map((member) => member.prepare(job)))
  return Promise.all(members.map(async (member) => (await member.go()) as PostgresResult))
}

interface Fault {
  readonly title: 'stopped' | 'killed'
  readonly logged: boolean
  readonly lastsMs: number
}

/** Load through a fault. A key that was used up before stays so, unless its table is unlogged and the server was killed. */
async function outlast(server: PostgresServer, { title, logged, lastsMs }: Fault): Promise<Outcome> {
  const table = `${title}${logged ? '_logged' : ''}`
  await spend(server, table, logged)
  const store = postgresStore(server.url, { table, logged })
  await store.ready()
  const isStop = title === 'stopped'
  const survived = await sitOut(store, {
    title: `${title}, ${logged ? 'logged' : 'unlogged'}`,
    begin: () => (isStop ? server.pause() : server.kill()),
    end: () => (isStop ? server.resume() : server.restart()),
    lastsMs,
  })
  await store.close()
  const left = await remainingIn(server, table, logged)
  const expected = isStop || logged ? 0 : 10
  return {
    pass: survived.pass && left === expected,
    figure: `${survived.figure}, ${left} of 10 units there again`,
  }
}

/**
 * Kills Postgres behind a PgBouncer, which then tries no connection for its `server_login_retry`, here a second. Passes if the store
 * decides again within its own 500 ms of the first query that PgBouncer lets through.
 */
async function returnBehindPgBouncer(server: PostgresServer, lastsMs: number): Promise<Outcome> {
  const bouncer = await startPgBouncer(server, { settings: { server_login_retry: '1' } })
  const pools = [4, 1].map(
    (max) => new Pool({ connectionString: bouncer.url, max, query_timeout: 1000 }),
  ) as [Pool, Pool]
  for (const pool of pools) pool.on('error', () => {})
  const answers = () =>
    pools[1].query('select 1').then(
      () => true,
      () => false,
    )
  const store = postgresStore(pools[0], { table: 'bounced' })
  try {
    await store.ready()
    return await sitOut(store, {
      title: 'killed behind PgBouncer',
      begin: () => server.kill(),
      end: async () => {
        await server.restart()
        await until('PgBouncer to connect again', answers, 10_000)
      },
      lastsMs,
    })
  } finally {
    await store.close()
    await Promise.all(pools.map((pool) => pool.end()))
    await bouncer.stop()
  }
}

/**
 * Makes a standby the primary. Passes if it refuses stores until then, and has the state of the logged table afterwards, but
 * not of the other.
 */
async function promote(server: PostgresServer): Promise<Outcome> {
  for (const logged of [true, false]) await spend(server, tableOf(logged), logged)
  const standby = await server.standby()
  const pool = new Pool({ connectionString: standby.url, max: 1 })
  try {
    const kept = `select 1 from ${tableOf(true)} where state <> ''` // the row that marks the table has none
    await until('the standby to follow', async () => (await pool.query(kept)).rowCount === 1)
    const refusals = await Promise.all([true, false].map((logged) => refusalOf(standby, logged)))
    await server.kill()
    await standby.promote()
    const [logged, unlogged] = [
      await remainingIn(standby, tableOf(true), true),
      await remainingIn(standby, tableOf(false), false),
    ]
    const pass = refusals.every((code) => code === 'STORE_READONLY') && logged === 0 && unlogged === 10
    const figure = `a standby refuses (${refusals.join()}); promoted: ${logged} of 10 units there again if logged, ${unlogged} if not`
    return { pass, figure }
  } finally {
    await pool.end()
    await standby.stop()
    await server.restart()
  }
}

/** The name of the table, which differs by whether Postgres logs its writes. */
function tableOf(logged: boolean): string {
  return logged ? 'promoted_logged' : 'promoted'
}

/** The code of the error with which a store refuses to start on a server; 'none' if it starts. */
async function refusalOf(server: PostgresServer, logged: boolean): Promise<string> {
  const store = postgresStore(server.url, { table: tableOf(logged), logged })
  const refusal = await store.ready().then(
    () => 'none',
    (error: { readonly code: string }) => error.code,
  )
  await store.close()
  return refusal
}

/** Spends the whole limit of one key. */
async function spend(server: PostgresServer, table: string, logged: boolean): Promise<void> {
  await withLimiter(server, table, logged, (limiter) => limiter.consume('spent', { cost: 10 }))
}

/** What is left of that limit. */
async function remainingIn(server: PostgresServer, table: string, logged: boolean): Promise<number> {
  const { remaining } = await withLimiter(server, table, logged, (limiter) => limiter.peek('spent'))
  return remaining
}

/** Lets `use` work with a limiter on a table, and closes it afterwards. */
async function withLimiter<T>(
  server: PostgresServer,
  table: string,
  logged: boolean,
  use: (limiter: ReturnType<typeof createLimiter>) => Promise<T>,
): Promise<T> {
  const store = postgresStore(server.url, { table, logged })
  const policies = [gcra({ limit: 10, window: '1d', burst: 10 })]
  const limiter = createLimiter({ name: 'kept', policies, store, onStoreError: 'throw', deadline: '10s' })
  try {
    await store.ready()
    return await use(limiter)
  } finally {
    await limiter.close()
    await store.close()
  }
}
