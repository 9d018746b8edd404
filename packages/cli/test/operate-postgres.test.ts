import { createLimiter, slidingLog } from '@sluice/core'
import { type PostgresServer, startPostgres } from '@sluice/harness/postgres'
import { postgresStore } from '@sluice/postgres'
import { openStore } from '../src/acts/open-store.js'
import { explained, planAct } from '../src/acts/act.js'
import { Site } from '../src/acts/site.js'

const policies = [slidingLog({ limit: 1, window: '1d' })]
const WHO = { reason: 'ticket 42', by: 'ann' }

let server: PostgresServer
beforeAll(async () => void (server = await startPostgres()))
afterAll(() => server.stop())

it('acts on a store in Postgres by a key, and lists its records, as no key can be read there', async () => {
  const { url } = server
  await expect(openStore(url, { table: 'limits' })).rejects.toMatchObject({ name: 'StoreError' })
  const store = postgresStore(url, { table: 'limits' })
  const limiter = createLimiter({ name: 'api', policies, store, deadline: '10s', onStoreError: 'throw' })
  await limiter.consume('user:ann')
  await limiter.block('user:bob', '1h', WHO)
  const site = new Site(await openStore(url, { table: 'limits' }), [{ name: 'api', policies }])
  const own = site.limitersOf(site.limits[0]!)
  expect(await explained(own, 'user:ann')).toMatchObject({ allowed: false, cures: ['reset', 'override'] })
  const left = new Map()
  const found = []
  for await (const row of site.blocked(left)) found.push(row)
  expect(found).toMatchObject([{ limiter: 'api', key: 'user:bob', isRecorded: true, ...WHO }])
  const planned = await planAct(own, 'user:ann', { act: 'exempt', duration: '1h', ...WHO })
  expect((await planned.carryOut()).allowed).toBe(true)
  expect(await site.records(left)).toMatchObject([
    { kind: 'override', stored: 'user:ann' },
    { kind: 'block', stored: 'user:bob' },
  ])
  await site.close()
  await limiter.close()
  await store.close()
})
