import { consumeAll, createLimiter, createSemaphore, gcra, slidingLog } from '@sluice/core'
import { type PgBouncer, startPgBouncer } from '@sluice/harness/postgres'
import { until } from '@sluice/harness/redis'
import { postgresStore } from '@sluice/postgres'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ClientBase, Pool } from 'pg'
import { databaseOf } from '../src/database.js'
import { Sweep } from '../src/sweep.js'
import { onePostgres } from './one-postgres.js'

jest.setTimeout(60_000)

const own = onePostgres()

/** The table of the README: where a setting is made, its name, the values that are run, and what a store does then. */
const ROWS = readFileSync(join(__dirname, '../README.md'), 'utf8')
  .split('\n')
  .map((line) => /^\| (Postgres|PgBouncer) \| `(\w+)` \| (.+?) \| `?(decides|STORE_\w+)\b.* \|$/.exec(line))
  .flatMap((match) => (match ? [match.slice(1) as [string, string, string, string]] : []))
  .flatMap(([where, name, values, outcome]) =>
    values.split(/(?<=`), /).map((value) => [where, name, value.replaceAll('`', ''), outcome] as const),
  )
const ofPostgres = ROWS.filter(([where]) => where === 'Postgres').map(([, ...row]) => row)
const ofPgBouncer = ROWS.filter(([where]) => where === 'PgBouncer').map(([, ...row]) => row)

/** What two stores do with all that a store does: 'decides' if all is exact, or the code of the first error. */
async function outcomeOn(pools: readonly Pool[], schema: string, table: string): Promise<string> {
  const stores = pools.map((pool) => postgresStore(pool, { schema, table, denialCache: false }))
  const limitersOf = (name: string, policy = gcra({ limit: 20, window: '1d', burst: 20 })) =>
    stores.map((store) =>
      createLimiter({ name, policies: [policy], store, onStoreError: 'throw', deadline: '20s' }),
    )
  try {
    for (const store of stores) await store.ready()
    const [hot, many, tenants, users] = ['hot', 'many', 'tenant', 'user'].map((name) => limitersOf(name)) as [
      ReturnType<typeof limitersOf>,
      ReturnType<typeof limitersOf>,
      ReturnType<typeof limitersOf>,
      ReturnType<typeof limitersOf>,
    ]
    const admitted = async (calls: readonly Promise<{ readonly allowed: boolean }>[]) =>
      (await Promise.all(calls)).filter(({ allowed }) => allowed).length
    const thirty = Array.from({ length: 30 }, (_, i) => `${i}`)
    expect(await admitted(thirty.flatMap(() => hot.map((limiter) => limiter.consume('a'))))).toBe(20)
    for (let round = 0; round < 3; round++) await Promise.all(thirty.map((key) => many[0]!.consume(key)))
    const left = await Promise.all(thirty.map(async (key) => (await many[1]!.peek(key)).remaining))
    expect(left).toEqual(thirty.map(() => 17))
    const wholes = thirty.map((key, i) =>
      consumeAll([
        { limiter: tenants[i % 2]!, key: 'acme' },
        { limiter: users[i % 2]!, key, cost: 2 },
      ]),
    )
    expect(await admitted(wholes)).toBe(20)
    const [log] = limitersOf('log', slidingLog({ limit: 3, window: '1d' })) as [
      ReturnType<typeof createLimiter>,
    ]
    expect(await admitted([1, 2, 3, 4].map(() => log.consume('a')))).toBe(3)
    const [semaphore] = stores.map((store) =>
      createSemaphore({ name: 's', limit: 1, store, deadline: '20s' }),
    )
    const permit = await semaphore!.acquire('a', { maxWait: 0 })
    expect([permit.allowed, (await semaphore!.acquire('a', { maxWait: 0 })).allowed]).toEqual([true, false])
    await permit.release()
    const rows = { table: `"${schema}"."${table}"`, options: { clock: undefined } }
    expect(await new Sweep(databaseOf(pools[0], false), rows).slice()).toBe(0)
    return 'decides'
  } catch (error) {
    const { code, message } = error as { readonly code?: string; readonly message: string }
    return code?.startsWith('STORE_') ? code : message
  } finally {
    for (const store of stores) await store.close()
  }
}

let roles = 0
/** A role with a schema of its own, and the URL of its sessions. */
async function makeRole(): Promise<{ readonly role: string; readonly url: string }> {
  const role = `role_${++roles}`
  await own.pool.query(`create role ${role} login superuser; create schema ${role}`)
  return { role, url: own.server.url.replace('postgres@', `${role}@`) }
}
/** A value as `set` takes it: names of a path and words stand as they are. */
const literal = (name: string, value: string) => (name === 'search_path' ? value : `'${value}'`)

it('the README has a table of settings', () => {
  expect([ofPostgres.length, ofPgBouncer.length]).toEqual([expect.any(Number), expect.any(Number)])
  expect(ofPostgres.length).toBeGreaterThan(40)
  expect(ofPgBouncer.length).toBeGreaterThan(5)
})

describe.each(ofPostgres)('%s = %s', (name, value, outcome) => {
  /** Runs it, and once more when its connections have been ended, where the setting ends those that are idle. */
  const expectOutcome = async (pools: readonly Pool[], role: string) => {
    expect(await outcomeOn(pools, role, 'first')).toBe(outcome)
    if (name !== 'idle_session_timeout') return
    await until('idle connections are ended', () => pools.every((pool) => pool.totalCount === 0))
    expect(await outcomeOn(pools, role, 'again')).toBe(outcome)
  }

  it(`of a session: ${outcome}`, async () => {
    const { role, url } = await makeRole()
    const set = (client: ClientBase) => client.query(`set ${name} = ${literal(name, value)}`)
    const pools = [own.open(url, 4, set), own.open(url, 4, set)]
    await expectOutcome(pools, role)
    await Promise.all(pools.map((pool) => pool.end()))
  })

  it(`of a role: ${outcome}`, async () => {
    const { role, url } = await makeRole()
    await own.pool.query(`alter role ${role} set ${name} = ${literal(name, value)}`)
    const pools = [own.open(url), own.open(url)]
    await expectOutcome(pools, role)
    await Promise.all(pools.map((pool) => pool.end()))
  })
})

describe.each(ofPgBouncer)('%s = %s of PgBouncer', (name, value, outcome) => {
  let bouncer: PgBouncer
  beforeAll(async () => {
    bouncer = await startPgBouncer(own.server, { settings: { [name]: value } })
  })
  afterAll(() => bouncer?.stop())

  it(`${outcome}`, async () => {
    const { role } = await makeRole()
    const pools = [own.open(bouncer.url), own.open(bouncer.url)]
    expect(await outcomeOn(pools, role, 'bounced')).toBe(outcome)
    await Promise.all(pools.map((pool) => pool.end()))
  })
})
