import '@sluice/calendar'
import { FakeClock } from '@sluice/testing'
import { calendarWindow, fixedWindow, memoryStore, type Policy, slidingLog } from '../../../src/index.js'
import { redisStore } from '../../../src/stores/redis/index.js'
import type { Answer, Booking, Store } from '../../../src/stores/store.js'
import { oneRedis } from './one-redis.js'

const { client } = oneRedis()

/** One key under several lists of policies of the same shapes; the last argument of each call says which. */
async function keyIn(kind: 'memory' | 'Redis', ...lists: readonly (readonly Policy[])[]) {
  const clock = new FakeClock()
  const options = { clock: clock.now }
  const store: Store = kind === 'memory' ? memoryStore(options) : redisStore(client, options)
  const keyspaces = lists.map((policies) => store.keyspace('cancelling', policies, () => {}))
  await keyspaces[0]!.correct({ kind: 'reset', key: 'k' })
  const ask = async (operation: 'consume' | 'peek' | 'book', list = 0): Promise<Answer> =>
    keyspaces[list]!.decide(operation, 'k', 1, operation === 'book' ? 3_600_000_000 : 0)
  return {
    clock,
    ask,
    book: async (list = 0): Promise<Booking> => (await ask('book', list)).booking!,
    hold: async (duration: number) => keyspaces[0]!.correct({ kind: 'hold', key: 'k', duration }),
    cancel: async (booking: Booking) => keyspaces[0]!.cancel(booking),
    [Symbol.asyncDispose]: async () => store.close(),
  }
}

describe.each(['memory', 'Redis'] as const)(
  'bookings in %s that are cancelled, the newest first,',
  (kind) => {
    it('leave a log as it was where the second one made it grow', async () => {
      const [few, many] = [4, 100].map((limit) => [slidingLog({ limit, window: '10s' })])
      await using key = await keyIn(kind, few!, many!)
      for (let i = 0; i < 4; i++) {
        await key.ask('consume')
        key.clock.pass(i < 3 ? 3000 : 50)
      }
      const before = await key.ask('peek')
      const [first, second] = [await key.book(), await key.book(1)]
      expect(await key.cancel(second)).toBe(true)
      expect(await key.cancel(first)).toBe(true)
      expect(await key.ask('peek')).toEqual(before)
      expect((await key.ask('consume')).reason).toBe('limit')
    })

    it('leave each of several logs as it was', async () => {
      const policies = [slidingLog({ limit: 100, window: '10s' }), slidingLog({ limit: 1000, window: '1h' })]
      await using key = await keyIn(kind, policies)
      for (let i = 0; i < 8; i++) {
        await key.ask('consume')
        key.clock.pass(i < 7 ? 3000 : 2500)
      }
      await key.hold(1_000_000)
      const before = await key.ask('peek')
      const [first, second] = [await key.book(), await key.book()]
      expect(await key.cancel(second)).toBe(true)
      expect(await key.cancel(first)).toBe(true)
      expect(await key.ask('peek')).toEqual(before)
      key.clock.pass(3_587_500) // the fifth of the eight is the oldest that the hour holds
      const [, shortRemaining, , , longRemaining] = (await key.ask('peek')).parts!
      expect([shortRemaining, longRemaining]).toEqual([100, 996])
    })
  },
)

it('a charge that is undone after the clock was set back leaves the window of a calendar as it is', async () => {
  const clock = new FakeClock()
  clock.pass(43_200_000)
  const store = redisStore(client, { clock: clock.now })
  const policies = [fixedWindow({ limit: 1000, window: '1m' }), calendarWindow({ limit: 1000, every: 'day' })]
  const keyspace = store.keyspace('undone', policies, () => {})
  await keyspace.decide('consume', 'k', 900, 0)
  clock.pass(30_000)
  const { booking } = await keyspace.decide('commit', 'k', 1, 0)
  clock.pass(-90_000)
  await keyspace.cancel(booking!)
  clock.pass(1000)
  const { parts } = await keyspace.decide('peek', 'k', 1, 0)
  expect(parts![4]).toBeLessThanOrEqual(100)
  await store.close()
})
