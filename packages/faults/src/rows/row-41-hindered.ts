import { createLimiter, type Decision, gcra } from '@sluice/core'
import type { PostgresServer } from '@sluice/harness/postgres'
import { pause } from '@sluice/harness/redis'
import { type PostgresStore, postgresStore } from '@sluice/postgres'
import { Client, Pool } from 'pg'
import { DEADLINE_MS, together } from '../outage.js'
import type { Outcome } from '../row.js'

/*
 * Other work on the database, and a store beside it: locks on its rows, a pool that others use up, time-outs, deadlocks. Row 41.
 */

const BAR_MS = DEADLINE_MS + 50
const LIMIT = 10

/** Hinders a Postgres in each of eight ways while limiters call it. Passes if all of them are survived. */
export async function hinder(server: PostgresServer): Promise<Outcome> {
  return together([
    await takeTurns(server),
    await holdLock(server),
    await overtake(server),
    await usePool(server),
    await timeOut(server),
    await deadlock(server),
    await stepClock(server),
    await refuse(server),
  ])
}

/** A limiter on a store of Postgres that denies where the store does not answer by the deadline, in milliseconds. */
function limiterOn(store: PostgresStore, deadline = DEADLINE_MS, limit = LIMIT) {
  const policies = [gcra({ limit, window: '1d', burst: limit })]
  return createLimiter({ name: 'hindered', policies, store, deadline, onStoreError: 'deny' })
}

/** A connection of its own to a Postgres, to hinder it by. */
async function connected(server: PostgresServer): Promise<Client> {
  const client = new Client({ connectionString: server.url })
  client.on('error', () => {})
  await client.connect()
  return client
}

/** Two processes write a key in turn, two lone calls each: neither decides on the row as it left it before the other came. */
async function takeTurns(server: PostgresServer): Promise<Outcome> {
  const stores = [1, 2].map(() => postgresStore(server.url, { table: 'in_turn', denialCache: false }))
  const limiters = stores.map((store) => limiterOn(store, 10_000))
  let admitted = 0
  for (let call = 0; call < 4 * LIMIT; call++) {
    const { allowed, degraded } = await limiters[(call >> 1) % 2]!.consume('a')
    if (allowed && !degraded) admitted++
  }
  await Promise.all(stores.map((store) => store.close()))
  return { pass: admitted === LIMIT, figure: `two processes in turn: ${admitted} of ${LIMIT} admitted` }
}

/** Another session locks a row for a second: its key is answered by the deadline, and other keys are decided. */
async function holdLock(server: PostgresServer): Promise<Outcome> {
  const store = postgresStore(server.url, { table: 'locked' })
  const limiter = limiterOn(store)
  const other = await connected(server)
  try {
    await store.ready()
    const first = await limiter.consume('locked')
    await other.query('begin; select 1 from locked for update')
    const locked = await timed(() => limiter.consume('locked'))
    const free = await Promise.all([1, 2, 3].map((key) => limiter.consume(`${key}`)))
    await other.query('rollback')
    await pause(50)
    let admitted = first.degraded ? 0 : 1
    for (let call = 0; call < 2 * LIMIT; call++) {
      const { allowed, degraded } = await limiter.consume('locked')
      if (allowed && !degraded) admitted++
    }
    const decided = free.filter(({ degraded }) => degraded === undefined).length
    // The call that had no answer was carried out when the lock was gone.
    const pass =
      locked.ms <= BAR_MS &&
      locked.reasons === 'timeout' &&
      decided === 3 &&
      admitted <= LIMIT &&
      admitted >= LIMIT - 1
    const figure = `a locked row: answered in ${locked.ms.toFixed(0)} ms (bar ${BAR_MS}), ${decided} of 3 others decided, ${admitted} of ${LIMIT} admitted`
    return { pass, figure }
  } finally {
    await other.end()
    await store.close()
  }
}

/** Another session writes rows while a batch waits for their locks: the keys are used up then, whatever the batch had read. */
async function overtake(server: PostgresServer): Promise<Outcome> {
  const store = postgresStore(server.url, { table: 'overtaken', denialCache: false })
  const limiter = limiterOn(store, 10_000)
  const other = await connected(server)
  const batch = (): Promise<Decision[]> => Promise.all(['a', 'b'].map((key) => limiter.consume(key)))
  try {
    for (let call = 0; call < LIMIT; call++) await limiter.consume('used up')
    const ofKeys = `where state <> ''` // the row that marks the table has none
    const { rows } = await other.query(`select state from overtaken ${ofKeys}`)
    await batch()
    await other.query('begin')
    const write = `update overtaken set version = version + 1, state = $1 ${ofKeys}`
    await other.query(write, [rows[0].state])
    const late = batch()
    await pause(50)
    await other.query('commit')
    const denied = (await late).filter(({ reason }) => reason === 'limit').length
    return { pass: denied === 2, figure: `rows written behind their locks: ${denied} of 2 calls denied` }
  } finally {
    await other.end()
    await store.close()
  }
}

/**
 * Makes calls while the service itself has taken all connections of its pool. Passes if they are answered in time, and by
 * Postgres again afterwards.
 */
async function usePool(server: PostgresServer): Promise<Outcome> {
  const pool = new Pool({ connectionString: server.url, max: 1 })
  const store = postgresStore(pool, { table: 'pooled' })
  const limiter = limiterOn(store)
  await store.ready()
  const taken = await pool.connect()
  const calls = await Promise.all([1, 2, 3, 4].map((key) => timed(() => limiter.consume(`${key}`))))
  taken.release()
  await pause(100)
  const after = await limiter.consume('after')
  await limiter.close()
  await store.close()
  await pool.end()
  const slowest = Math.max(...calls.map(({ ms }) => ms))
  const reasons = [...new Set(calls.map((call) => call.reasons))].join()
  const pass = slowest <= BAR_MS && reasons === 'timeout' && after.degraded === undefined
  return {
    pass,
    figure: `an exhausted pool: answered in ${slowest.toFixed(0)} ms (${reasons}), decided again after`,
  }
}

/** Postgres cancels a statement that waits for a lock: one clear error, and nothing is charged. */
async function timeOut(server: PostgresServer): Promise<Outcome> {
  const pool = new Pool({ connectionString: server.url, max: 4, statement_timeout: 100 })
  const store = postgresStore(pool, { table: 'cancelled' })
  const policies = [gcra({ limit: LIMIT, window: '1d', burst: LIMIT })]
  const limiter = createLimiter({ name: 'hindered', policies, store, deadline: '5s', onStoreError: 'throw' })
  const other = await connected(server)
  try {
    await limiter.consume('a')
    await other.query('begin; select 1 from cancelled for update')
    const error = await limiter.consume('a').catch((error: unknown) => error as Error)
    await other.query('rollback')
    const { remaining } = await limiter.peek('a')
    const { code, sent, message } = error as { code?: string; sent?: boolean; message: string }
    const pass = code === 'STORE_TIMEOUT' && sent === false && remaining === LIMIT - 1
    return { pass, figure: `statement_timeout: ${code} (${message}), ${remaining} left of ${LIMIT - 1}` }
  } finally {
    await other.end()
    await store.close()
    await pool.end()
  }
}

/** Transactions of others lock rows of the table the other way round. A batch that Postgres ends is decided again. */
async function deadlock(server: PostgresServer): Promise<Outcome> {
  const pool = new Pool({ connectionString: server.url, max: 4, options: '-c deadlock_timeout=20ms' })
  const store = postgresStore(pool, { table: 'deadlocked', denialCache: false })
  const limiter = limiterOn(store, 10_000)
  const other = await connected(server)
  const keys = ['a', 'b', 'c', 'd']
  const all = (): Promise<Decision[]> => Promise.all(keys.map((key) => limiter.consume(key)))
  const before = await deadlocksIn(other)
  let admitted = 0
  try {
    await all()
    admitted += keys.length
    for (let round = 0; round < LIMIT; round++) {
      // Holds the last row, waits for a batch to lock the first, and then wants that one.
      await other.query(
        'begin; select 1 from deadlocked where id = (select id from deadlocked order by id desc limit 1) for update',
      )
      const batch = all()
      await pause(10)
      const first = `select 1 from deadlocked where state <> '' order by id limit 1 for update`
      await other.query(first).catch(() => {})
      await other.query('rollback')
      admitted += (await batch).filter(({ allowed, degraded }) => allowed && !degraded).length
    }
    await pause(600) // until the statistics are in
    const deadlocks = (await deadlocksIn(other)) - before
    const expected = keys.length * LIMIT
    const figure = `${deadlocks} deadlocks with foreign transactions: ${admitted} of ${expected} admitted`
    return { pass: admitted === expected && deadlocks > 0, figure }
  } finally {
    await other.end()
    await store.close()
    await pool.end()
  }
}

/** How many deadlocks the database has broken since it was made. */
async function deadlocksIn(client: Client): Promise<number> {
  const { rows } = await client.query(
    'select deadlocks::int from pg_stat_database where datname = current_database()',
  )
  return (rows[0] as { deadlocks: number }).deadlocks
}

/** The clock of the store is set back and forward: usable again within a window, at most one extra burst. */
async function stepClock(server: PostgresServer): Promise<Outcome> {
  const HOUR = 3_600_000_000
  let now = 1_800_000_000_000_000
  const store = postgresStore(server.url, { table: 'stepped', clock: () => now, denialCache: false })
  const limiter = limiterOn(store, 10_000)
  const admitted: number[] = []
  const spend = async (): Promise<void> => {
    const calls = await Promise.all(Array.from({ length: 2 * LIMIT }, () => limiter.consume('a')))
    admitted.push(calls.filter(({ allowed }) => allowed).length)
  }
  for (const step of [0, -HOUR, HOUR, -25 * HOUR, 24 * HOUR]) {
    now += step
    await spend()
  }
  await store.close()
  const pass = admitted.join() === [LIMIT, 0, 0, LIMIT, LIMIT].join()
  return { pass, figure: `clock steps of -1, +1, -25, +24 hours: ${admitted.join()} admitted of ${LIMIT}` }
}

/** A role without rights, and a table of another shape: one clear error each, and no call passes. */
async function refuse(server: PostgresServer): Promise<Outcome> {
  const other = await connected(server)
  await other.query('create table foreign_shape (id int primary key); create role powerless login')
  await other.query('revoke create on schema public from public')
  await other.end()
  const weak = server.url.replace('postgres@', 'powerless@')
  const stores = [
    postgresStore(weak, { table: 'not_mine' }),
    postgresStore(server.url, { table: 'foreign_shape' }),
  ]
  const decisions = await Promise.all(stores.map((store) => limiterOn(store, 5000).consume('a')))
  await Promise.all(stores.map((store) => store.close()))
  const seen = decisions.map(({ allowed, degraded }) => `${degraded}${allowed ? ' allowed' : ''}`).join()
  return { pass: seen === 'forbidden,error', figure: `no rights, another table: ${seen}` }
}

/** Makes a call, and measures how many milliseconds it took and why the store did not decide, if it did not. */
async function timed(call: () => Promise<Decision>): Promise<{ ms: number; reasons: string }> {
  const began = performance.now()
  const { degraded } = await call()
  return { ms: performance.now() - began, reasons: String(degraded) }
}
