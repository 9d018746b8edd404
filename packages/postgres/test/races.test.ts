import { consumeAll, createLimiter, gcra, type Policy, slidingLog } from '@sluice/core'
import { type PgBouncer, startPgBouncer } from '@sluice/harness/postgres'
import { type PostgresStore, postgresStore } from '@sluice/postgres'
import type { Pool } from 'pg'
import postgres from 'postgres'
import { onePostgres } from './one-postgres.js'

jest.setTimeout(60_000)

const own = onePostgres()
const stores: PostgresStore[] = []
afterEach(() => Promise.all(stores.splice(0).map((store) => store.close())))

const onPg = (pool: Pool) => {
  const store = postgresStore(pool)
  stores.push(store)
  return store
}
const limiterOn = (store: PostgresStore, policy: Policy, name = 'races') =>
  createLimiter({ name, policies: [policy], store, deadline: '1m', onStoreError: 'throw' })

/** Calls of each store at once; the number that was admitted. */
async function race(opened: readonly PostgresStore[], policy: Policy, calls: number, key: string) {
  const limiters = opened.map((store) => limiterOn(store, policy))
  const decisions = await Promise.all(
    limiters.flatMap((limiter) => Array.from({ length: calls }, () => limiter.consume(key))),
  )
  return decisions.filter(({ allowed }) => allowed).length
}

describe('stores that race for a key', () => {
  const policies: readonly [string, Policy][] = [
    ['gcra', gcra({ limit: 100, window: '1d', burst: 100 })],
    ['slidingLog', slidingLog({ limit: 100, window: '1d' })],
  ]

  it.each(policies)('admit exactly the limit of %s', async (name, policy) => {
    const opened = Array.from({ length: 4 }, () => onPg(own.open()))
    expect(await race(opened, policy, 250, name)).toBe(100)
  })

  it('take at most 40 round trips for 2,000 decisions', async () => {
    let roundTrips = 0
    const opened = Array.from({ length: 4 }, () => {
      const pool = own.open()
      const query = pool.query.bind(pool) as (...args: unknown[]) => Promise<unknown>
      const counting = (...args: unknown[]) => {
        roundTrips++
        return query(...args)
      }
      return onPg(Object.assign(pool, { query: counting }))
    })
    await Promise.all(opened.map((store) => store.ready()))
    roundTrips = 0
    expect(await race(opened, gcra({ limit: 1000, window: '1d', burst: 1000 }), 500, 'two thousand')).toBe(
      1000,
    )
    expect(roundTrips).toBeLessThanOrEqual(40)
  })

  it('charge the keys of a call together, or none of them', async () => {
    const opened = Array.from({ length: 4 }, () => onPg(own.open()))
    const policy = slidingLog({ limit: 10, window: '1d' })
    const pairs = opened.map((store) => ({
      tenant: limiterOn(store, policy, 'tenant'),
      user: limiterOn(store, slidingLog({ limit: 1, window: '1d' }), 'user'),
    }))
    const users = Array.from({ length: 20 }, (_, i) => `user ${i}`)
    const calls = pairs.flatMap(({ tenant, user }) =>
      users.map((key) =>
        consumeAll([
          { limiter: tenant, key: 'acme' },
          { limiter: user, key },
        ]),
      ),
    )
    const admitted = (await Promise.all(calls)).filter(({ allowed }) => allowed)
    expect(admitted).toHaveLength(10)
    const left = await Promise.all(users.map((key) => pairs[0]!.user.peek(key)))
    expect(left.filter(({ remaining }) => remaining === 0)).toHaveLength(10)
  })

  describe('through PgBouncer in transaction mode', () => {
    let bouncer: PgBouncer
    beforeAll(async () => {
      bouncer = await startPgBouncer(own.server)
    })
    afterAll(() => bouncer?.stop())

    it.each(policies)('admit exactly the limit of %s', async (name, policy) => {
      const opened = Array.from({ length: 4 }, () => onPg(own.open(bouncer.url)))
      expect(await race(opened, policy, 250, `bounced ${name}`)).toBe(100)
    })

    it('admit exactly the limit over clients of postgres', async () => {
      const clients = Array.from({ length: 2 }, () =>
        postgres(bouncer.url, { prepare: false, max: 4, onnotice: () => {} }),
      )
      const opened = clients.map((client) => postgresStore(client))
      stores.push(...opened)
      expect(await race(opened, policies[0]![1], 250, 'bounced over postgres')).toBe(100)
      await Promise.all(clients.map((client) => client.end()))
    })
  })
})

it('counts keys of 8,192 units, of NUL and of lone surrogates apart and exactly', async () => {
  const long = 'k'.repeat(8191)
  const keys = [
    '',
    '\0',
    '\0\0',
    'a\0b',
    '\ud800',
    '\ud801',
    '\udc00',
    `${long}a`,
    `${long}b`,
    "'",
    '"',
    '{,}',
    '\\',
  ]
  const opened = [onPg(own.open()), onPg(own.open())]
  const limiters = opened.map((store) => limiterOn(store, gcra({ limit: 3, window: '1d', burst: 3 }), 'keys'))
  const admitted = await Promise.all(
    keys.map(async (key) => {
      const decisions = await Promise.all(
        limiters.flatMap((limiter) => [1, 2, 3].map(() => limiter.consume(key))),
      )
      return decisions.filter(({ allowed }) => allowed).length
    }),
  )
  expect(admitted).toEqual(keys.map(() => 3))
})
