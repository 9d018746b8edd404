import { expectWarnings } from '@sluice/harness/warnings'
import { startRedis, type RedisServer } from '@sluice/harness/redis'
import { findShapes } from '@sluice/testing/internal'
import { guard, keyspaceOver, type Update } from '@sluice/core/store'
import { createLimiter, memoryStore, type Store } from '../../src/index.js'
import { redisStore } from '../../src/stores/redis/index.js'
import type { Clock } from '../../src/values/clock.js'

/*
 * A clock is set back by less than a window: time stands still until it has caught up, and who is denied meanwhile is told to
 * wait for that as well.
 */

const WINDOW_MS = 60_000
const START = Date.UTC(2026, 0, 1) * 1000

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

/** A store over bytes, which has the clock of its server. */
function bytesStore(clock: Clock): Store {
  const kept = new Map<string, Uint8Array>()
  const update: Update = (id, change) => {
    const { result, state } = change(kept.get(id), clock())
    if (state) kept.set(id, state)
    return result
  }
  return {
    guard,
    keyspace: (name, policies, report, penalty) => keyspaceOver(update, name, policies, report, penalty),
    now: clock,
    close() {},
  }
}

const stores: Record<string, (clock: Clock) => Store> = {
  memory: (clock) => memoryStore({ clock }),
  'bytes kept elsewhere': bytesStore,
  Redis: (clock) => redisStore({ host: server.host, port: server.port }, { clock, denialCache: false }),
}

describe.each(Object.entries(stores))(
  'a denied caller of a store in %s whose clock was set back',
  (where, open) => {
    const { shapes } = findShapes()

    it.each(shapes.map((shape) => [shape.title, shape] as const))(
      'passes after the wait and not before: %s',
      async (title, { factory, variant }) => {
        expectWarnings([], { perhaps: ['STORE_FORGETS'] })
        for (const backMs of [1, 700, WINDOW_MS - 1]) {
          let now = START
          const store = open(() => now)
          const policies = [factory({ ...variant, limit: 10, window: WINDOW_MS })]
          const limiter = createLimiter({
            name: `${title.slice(0, 50)} ${backMs}`,
            policies,
            store,
            deadline: '10s',
          })
          while ((await limiter.consume(where)).allowed) now += 1000
          now -= backMs * 1000
          const { retryAfterMs } = await limiter.consume(where)
          now += (retryAfterMs - 1) * 1000
          expect(await limiter.consume(where)).toMatchObject({ allowed: false })
          now += 1000
          expect(await limiter.consume(where)).toMatchObject({ allowed: true })
          await limiter.close()
          await store.close()
        }
      },
    )
  },
)
