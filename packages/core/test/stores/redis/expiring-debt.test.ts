import { FakeClock } from '@sluice/testing'
import { type RedisServer, startRedis } from '@sluice/harness/redis'
import { gcra } from '../../../src/index.js'
import { redisStore } from '../../../src/stores/redis/index.js'
import type { Keyspace } from '../../../src/stores/store.js'

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

it('keeps a debt that a give-back under a slower tier has drained until then', async () => {
  const clock = new FakeClock()
  // Two, as of two processes that know nothing of each other's tiers.
  const stores = [1, 2].map(() => redisStore({ host: server.host, port: server.port }, { clock: clock.now }))
  const healed: string[] = []
  const [fast, slow] = stores.map((store, i) =>
    store.keyspace('debt', [gcra({ limit: [6, 1][i]!, window: '1m', burst: 600 })], ({ event }) =>
      healed.push(event),
    ),
  ) as [Keyspace, Keyspace]
  const { now: at } = await fast.decide('consume', 'k', 600, 0)
  clock.pass(9_600_000) // a minute before the state may expire
  const charge = { at, cost: 600, decidedAt: at }
  await slow.correct({ kind: 'release', key: 'k', charge, units: 1 })
  const { remaining } = await slow.decide('peek', 'k', 1, 0)
  expect({ remaining, healed }).toEqual({ remaining: 160, healed: [] })
  for (const store of stores) await store.close()
})
