import { everyPolicy } from '@sluice/testing/internal'
import { type Argument, command } from '@sluice/harness/redis'
import { createLimiter } from '../../../src/index.js'
import { describePolicy } from '../../../src/stores/redis/script/policy-module.js'
import { redisStore } from '../../../src/stores/redis/index.js'
import { oneRedis, withoutRecords } from './one-redis.js'

jest.setTimeout(60_000)

const { server, client } = oneRedis()
const POLICIES = everyPolicy({ limit: 100, window: 3_600_000 })

const SLOTS = 'slots that are none'

type Make = [what: string, command: string, ...Argument[]]

/** Commands that put something in the place of a sound state which no call can have written there. */
function unreadable(key: string, state: Buffer, cells: number): Make[] {
  const withNumber = (place: number, number: number) => {
    const value = Buffer.from(state)
    value.writeDoubleLE(number, 8 * place)
    return value
  }
  const slots = Buffer.alloc(state.length - 8 * (5 + cells), 0xff)
  const values: [string, Buffer | string][] = [
    ['a letter', 'x'],
    ['a number lost', state.subarray(0, -8)],
    ['a number more', Buffer.concat([state, Buffer.alloc(8)])],
    ['a header without what it says', Buffer.concat([state, Buffer.alloc(32)])],
    ['no header where there should be one', withNumber(2, 1)],
    [SLOTS, Buffer.concat([state.subarray(0, 8 * (5 + cells)), slots])],
    ...Array.from({ length: 5 + cells }, (_, i): [string, Buffer] => [`number ${i}`, withNumber(i, -1)]),
  ]
  return [
    ...values.map(([what, value]): Make => [what, 'SET', key, value]),
    ['a list', 'RPUSH', key, 'a'],
    ['a hash', 'HSET', key, 'a', '1'],
    ['a sorted set', 'ZADD', key, '1', 'a'],
  ]
}

describe.each([
  ['of a limiter', {}, POLICIES],
  ['of a limiter with a penalty', { penalty: { after: 3, block: '1m' } as const }, POLICIES],
  [
    'of a limiter that reserves',
    { reservations: { max: 10 } },
    POLICIES.filter(([, { algorithm }]) => !algorithm.drains || algorithm.name.endsWith('slots')),
  ],
])('a peek at unreadable state %s writes nothing', (_, options, policies) => {
  it.each(policies)('%s', async (_title, policy) => {
    await client.flushall()
    const store = withoutRecords(redisStore(client, { denialCache: false }))
    const limiter = createLimiter({
      name: 'peeks',
      policies: [policy],
      store,
      onStoreError: 'throw',
      deadline: '10s',
      ...options,
    })
    const healed: string[] = []
    limiter.on('healed', ({ key }) => healed.push(key))
    await limiter.consume('k')
    const [key] = await client.keys('*')
    const state = (await client.getBuffer(key!))!
    const cells = describePolicy(policy, 0).cells.length + ('reservations' in options ? 6 : 0)
    for (const [what, ...make] of unreadable(key!, state, cells)) {
      if (what === SLOTS && state.length === 8 * (5 + cells)) continue
      await client.del(key!)
      await command(server, ...make)
      const before = await client.dumpBuffer(key!)
      await limiter.peek('k', { cost: 1 })
      await Promise.all([limiter.peek('k'), limiter.peek('other')])
      expect([what, await client.dumpBuffer(key!)]).toEqual([what, before])
      expect([what, ...healed]).toEqual([what])
      await limiter.charge('k')
      expect([what, healed.splice(0)]).toEqual([what, ['k']])
      // Slots are read while the charge is made, and discarded with it.
      expect([what, (await limiter.consume('k')).remaining]).toEqual([what, what === SLOTS ? 99 : 98])
    }
  })
})

it.each(POLICIES)(
  'so does one at a header of a restricted key that no call has written: %s',
  async (_, policy) => {
    await client.flushall()
    const store = withoutRecords(redisStore(client, { denialCache: false }))
    const limiter = createLimiter({ name: 'peeks', policies: [policy], store, deadline: '10s' })
    const healed: string[] = []
    limiter.on('healed', ({ key: of }) => healed.push(of))
    await limiter.consume('k')
    await limiter.hold('k', '1h')
    const [key] = await client.keys('*')
    const state = (await client.getBuffer(key!))!
    expect(await limiter.peek('k', { cost: 1 })).toMatchObject({ reason: 'held' })
    for (const place of [4, 3, 2, 1]) {
      for (const number of [-1, 0.5, 2 ** 52]) {
        const value = Buffer.from(state)
        value.writeDoubleLE(number, state.length - 8 * place)
        if (place === 4 && number > 0) continue // any epoch but these
        await client.set(key!, value)
        await limiter.peek('k')
        expect([place, number, await client.getBuffer(key!), ...healed]).toEqual([place, number, value])
        await limiter.charge('k')
        expect([place, number, ...healed.splice(0)]).toEqual([place, number, 'k'])
        expect(await client.strlen(key!)).toBe(state.length - 32)
      }
    }
  },
)
