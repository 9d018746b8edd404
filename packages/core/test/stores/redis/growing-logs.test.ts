import { command, monitor } from '@sluice/harness/redis'
import fc from 'fast-check'
import {
  createLimiter,
  type Limiter,
  type LimiterOptions,
  memoryStore,
  slidingLog,
} from '../../../src/index.js'
import { redisStore } from '../../../src/stores/redis/index.js'
import { oneRedis } from './one-redis.js'

/* What docs/decisions/0027-logs-are-copied-as-they-grow.md has chosen: bytes, at the price of a copy each time that a log has doubled. */

const HOUR = 3_600_000
const { server, client } = oneRedis()

describe('a log that fills for the first time', () => {
  it.each([
    [1000, 1],
    [1001, 13],
    [20_000, 37],
    [100_000, 1000],
  ])(
    'copies each entry once where its ring grows, and takes no more bytes than it must: of %i, by %i',
    async (limit, cost) => {
      const store = redisStore(client)
      const policies = [slidingLog({ limit, window: '1d' })]
      const limiter = createLimiter({ name: `filled-${limit}`, policies, store, deadline: '30s' })
      const watching = await monitor(server)
      let used = 0
      while ((await limiter.consume('k', { cost })).allowed) used += cost
      const lines = await watching.stop()
      expect(used).toBe(limit - (limit % cost))
      const read = readBy(lines).map((bytes) => Math.floor(bytes / 8))
      const growths = read.filter((entries) => entries > 1000)
      expect(Math.max(...read)).toBeLessThan(limit)
      expect(growths.length).toBeLessThanOrEqual(Math.ceil(Math.log2(limit / 1000)))
      expect(growths.reduce((all, entries) => all + entries, 0)).toBeLessThan(2 * limit)
      const [key] = (await command<string[]>(server, 'KEYS', `*filled-${limit}:*`)) as [string]
      expect(await client.strlen(key)).toBeLessThan(limit * 8 + 200)
      expect((await command<number>(server, 'MEMORY', 'USAGE', key)) / limit).toBeLessThan(9.5)
      await store.close()
    },
  )
})

describe('a log that grows', () => {
  const step = fc.oneof(
    fc.record({ act: fc.constant('consume' as const), cost: fc.integer({ min: 1, max: 1000 }) }),
    fc.record({ act: fc.constant('charge' as const), cost: fc.integer({ min: 1, max: 1000 }) }),
    fc.record({ act: fc.constant('refund' as const), cost: fc.integer({ min: 1, max: 1000 }) }),
    fc.record({ act: fc.constant('release' as const), cost: fc.integer({ min: 1, max: 1000 }) }),
    fc.record({ act: fc.constant('pass' as const), cost: fc.integer({ min: 1, max: HOUR / 3 }) }),
  )
  const steps = fc.array(step, { minLength: 10, maxLength: 40 })
  const log = (limit: number) => slidingLog({ limit, window: HOUR, name: `of ${limit}` })

  it.each<[string, Partial<LimiterOptions>]>([
    ['alone', { policies: [log(3000)] }],
    ['of a limit that is no power of two', { policies: [log(4999)] }],
    ['before a small log', { policies: [log(3000), slidingLog({ limit: 900, window: 1000 })] }],
    ['beside a log as long', { policies: [log(3000), slidingLog({ limit: 2000, window: HOUR / 3 })] }],
    ['behind a small log', { policies: [slidingLog({ limit: 900, window: 1000 }), log(3000)] }],
    ['with the count of a penalty behind it', { policies: [log(3000)], penalty: { after: 3, block: '10m' } }],
  ])('decides as memory does: %s', async (title, options) => {
    let now = 1_800_000_000_000
    let key = 0
    const stores = [
      memoryStore({ clock: () => now * 1000 }),
      redisStore(client, { clock: () => now * 1000, denialCache: false }),
    ]
    const [here, there] = stores.map((store) =>
      createLimiter({
        ...options,
        name: title.replaceAll(' ', '-'),
        store,
        deadline: '30s',
      } as LimiterOptions),
    ) as [Limiter, Limiter]
    await fc.assert(
      fc.asyncProperty(steps, async (all) => {
        key++
        for (const { act, cost } of all) {
          if (act === 'pass') now += cost
          else {
            const seen = await Promise.all(
              [here, there].map((limiter) => acted(limiter, `${key}`, act, cost)),
            )
            expect(seen[1]).toEqual(seen[0])
          }
        }
        now += 2 * HOUR
      }),
      { numRuns: 40 },
    )
    for (const store of stores) await store.close()
  })
})

it('leaves the log before it as it is when a log grows', async () => {
  let now = 1_800_000_000_000
  const policies = [slidingLog({ limit: 10_000, window: '1h' }), slidingLog({ limit: 2000, window: '1m' })]
  const store = redisStore(client, { clock: () => now * 1000, denialCache: false })
  const limiter = createLimiter({ name: 'two-logs', policies, store, deadline: '30s' })
  const entries = async (): Promise<Buffer> =>
    (await client.getBuffer((await client.keys('*:two-logs:*'))[0]!))!.subarray(100, 8 * 6000)
  for (let i = 0; i < 7; i++) {
    await limiter.consume('k', { cost: 900 })
    now += 61_000
  }
  const before = await entries()
  await limiter.consume('k', { cost: 900 })
  await limiter.consume('k', { cost: 900 })
  expect((await entries()).equals(before)).toBe(true)
  await store.close()
})

/** What a call shows, and how the key stands after it. */
async function acted(
  limiter: Limiter,
  key: string,
  act: 'consume' | 'charge' | 'refund' | 'release',
  cost: number,
) {
  if (act === 'charge') await limiter.charge(key, { cost })
  else if (act === 'refund') await limiter.refund(key, { cost })
  else {
    const decision = await limiter.consume(key, { cost })
    if (act === 'release') await decision.settle(Math.floor(cost / 2))
  }
  const { allowed, remaining, retryAfterMs, resetAfterMs } = await limiter.peek(key, { cost: 1000 })
  return { allowed, remaining, retryAfterMs, resetAfterMs }
}

/** For each script in the lines of MONITOR, the bytes of a state that it read: what it copies it has to read. */
function readBy(lines: readonly string[]): readonly number[] {
  const read = [0]
  for (const line of lines) {
    const [, from, to] = / lua\] "GETRANGE" ".*" "(\d+)" "(\d+)"$/.exec(line) ?? []
    if (/^\S+ \[\d+ lua\]/.test(line))
      read[read.length - 1]! += to === undefined ? 0 : Number(to) - Number(from) + 1
    else read.push(0)
  }
  return read
}
