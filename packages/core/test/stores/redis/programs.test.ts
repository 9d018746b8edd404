import fc from 'fast-check'
import {
  consumeAll,
  createLimiter,
  fixedWindow,
  gcra,
  type Limiter,
  memoryStore,
  type Policy,
  slidingLog,
  slidingWindow,
  type Store,
  tokenBucket,
  type WholeDecision,
} from '../../../src/index.js'
import { prepareTogether } from '../../../src/limiter/decide-together.js'
import { redisStore } from '../../../src/stores/redis/index.js'
import { oneRedis } from './one-redis.js'

jest.setTimeout(60_000)

const ALGORITHMS = [gcra, slidingLog, fixedWindow, slidingWindow, tokenBucket]
const policyOf = (list: number): Policy => ALGORITHMS[list % 5]!({ limit: 100_000, window: `${60 + list}s` })

describe('scripts of calls on several keys', () => {
  const { client } = oneRedis()
  const settings = { onStoreError: 'throw', deadline: '10s' } as const
  beforeEach(async () => {
    await client.flushall()
    await client.script('FLUSH')
  })
  const scripts = async (): Promise<number> =>
    Number(/number_of_cached_scripts:(\d+)/.exec(await client.info('memory'))![1])

  /** As many limiters, whose lists of shapes differ, in one store, and the warnings of all. */
  function open(count: number): { limiters: readonly Limiter[]; codes: string[] } {
    const store = redisStore(client, { denialCache: false, prefix: `p${prefixes++}` })
    const limiters = Array.from({ length: count }, (_, i) =>
      createLimiter({ name: `list ${i}`, policies: [policyOf(i)], store, ...settings }),
    )
    const codes: string[] = []
    for (const limiter of limiters) limiter.on('warning', ({ code }) => codes.push(code))
    return { limiters, codes }
  }
  let prefixes = 0

  it('are at most 20 of a process, whatever 12 lists its callers name, in any order and number', async () => {
    const { limiters, codes } = open(12)
    const parts = fc.array(fc.record({ list: fc.nat(11), cost: fc.integer({ min: 1, max: 3 }) }), {
      minLength: 2,
      maxLength: 16,
    })
    const used = limiters.map(() => 0)
    const calls = fc.sample(parts, 10_000)
    for (let i = 0; i < calls.length; i += 100) {
      const wholes = calls.slice(i, i + 100).map((call) =>
        consumeAll(
          call.map(({ list, cost }, nth) => {
            used[list]! += cost
            return { limiter: limiters[list]!, key: `key ${nth}`, cost }
          }),
        ),
      )
      for (const { allowed } of await Promise.all(wholes)) expect(allowed).toBe(true)
    }
    expect(await scripts()).toBeLessThanOrEqual(20 + 1) // one reads records
    expect(codes).toEqual([])
    const counted = limiters.map(async (limiter) => {
      const peeked = await Promise.all(Array.from({ length: 16 }, (_, nth) => limiter.peek(`key ${nth}`)))
      return peeked.reduce((sum, { limit, remaining }) => sum + limit - remaining, 0)
    })
    // Debts have drained meanwhile; the others have not.
    for (const [i, count] of (await Promise.all(counted)).entries())
      if (ALGORITHMS[i % 5] === slidingLog) expect(count).toBe(used[i])
  })

  it('are no more than 20 when lists go on coming, and further calls are decided in two steps with one warning', async () => {
    const { limiters, codes } = open(200)
    for (let i = 0; i + 1 < limiters.length; i += 2) {
      const pair = [limiters[i + 1]!, limiters[i]!]
      const whole = await consumeAll(pair.map((limiter) => ({ limiter, key: 'k', cost: 2 })))
      expect(whole.allowed).toBe(true)
      for (const limiter of pair) expect((await limiter.peek('k')).remaining).toBeGreaterThanOrEqual(99_998)
    }
    for (const limiter of limiters.filter((_, i) => i % 5 === 1))
      expect((await limiter.peek('k')).remaining).toBe(99_998)
    expect(codes).toEqual(['PROGRAMS_FULL'])
    const alone = 200 // each list has the script of single calls too, one script asks for the policy of eviction, one reads records
    expect(await scripts()).toBeLessThanOrEqual(20 + alone + 2)
  })

  it('decide under many lists as memory does', async () => {
    let now = 1_800_000_000_000_000
    const lists = Array.from({ length: 16 }, (_, i) => [
      ALGORITHMS[i % 5]!({ limit: 3, window: `${10 + i}s` }),
      ...(i % 4 === 0 ? [gcra({ limit: 5, window: '1m', name: 'second' })] : []),
    ])
    const clock = (): number => now
    const openAll = (store: Store): readonly Limiter[] =>
      lists.map((policies, i) => {
        const penalty = i % 3 === 0 ? { penalty: { after: 2, block: '1m' } as const } : {}
        const enforce = i % 5 !== 4
        return createLimiter({
          name: `l${i}`,
          policies,
          store,
          ...(store.local ? {} : settings),
          enforce,
          ...penalty,
        })
      })
    const inMemory = openAll(memoryStore({ clock }))
    const inRedis = openAll(redisStore(client, { denialCache: false, prefix: 'wide', clock }))
    prepareTogether(inRedis)
    const part = fc.record({
      list: fc.nat(15),
      key: fc.nat(1),
      cost: fc.nat(2),
      isTier: fc.boolean(),
    })
    const call = fc.record({
      parts: fc.uniqueArray(part, {
        minLength: 2,
        maxLength: 5,
        selector: ({ list, key }) => 2 * list + key,
      }),
      step: fc.nat(8),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(call, { minLength: 1, maxLength: 12 }), async (calls) => {
        now += 3_600_000_000
        for (const { parts, step } of calls) {
          now += step * 1_000_000
          const decide = (limiters: readonly Limiter[]): Promise<WholeDecision> =>
            consumeAll(
              parts.map(({ list, key, cost, isTier }) => ({
                limiter: limiters[list]!,
                key: `key ${key}`,
                cost,
                policies: isTier ? lists[list]!.map((policy) => policy.with({ limit: 2 })) : lists[list]!,
              })),
            )
          // Two at once: the second one meets what the first has written.
          const [expected, seen] = await Promise.all(
            [inMemory, inRedis].map((limiters) => Promise.all([decide(limiters), decide(limiters)])),
          )
          expect(JSON.stringify(seen)).toBe(JSON.stringify(expected))
        }
      }),
      { numRuns: 100 },
    )
  })

  it('is one where an application names its limiters at set-up, for all subsets of them', async () => {
    const { limiters } = open(8)
    prepareTogether(limiters)
    for (let subset = 0; subset < 256; subset++) {
      const named = limiters.filter((_, i) => (subset >> i) & 1)
      if (named.length < 2) continue
      await consumeAll(named.map((limiter) => ({ limiter, key: 'k' })))
    }
    expect(await scripts()).toBe(3) // the others ask for the policy of eviction and for records
  })
})
