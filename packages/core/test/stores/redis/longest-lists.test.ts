import { everyPolicy } from '@sluice/testing/internal'
import { createLimiter, type Policy } from '../../../src/index.js'
import { redisStore } from '../../../src/stores/redis/index.js'
import { composeScript, composeTogether } from '../../../src/stores/redis/script/compose.js'
import { oneRedis } from './one-redis.js'

jest.setTimeout(60_000)

/*
 * Redis compiles the script of every list that a limiter may have: Lua allows 200 variables in one function, and 60 of those around it.
 */

const { client } = oneRedis()
const MOST = 10
const shapes = everyPolicy({ limit: 100, window: 3_600_000 }).map(([, policy]) => policy)
const penalty = {
  after: 2,
  block: 60_000_000,
  factor: 2,
  maxBlock: 600_000_000,
  forgetAfter: 600_000_000,
  then: 'fresh',
} as const
const times = (policy: Policy, most: number) => Array.from({ length: most }, () => policy)
const calendar = shapes.find(({ calendar: each }) => each)! // the shape with most numbers
const others = [...new Map(shapes.map((shape) => [shape.algorithm.name, shape])).values()]

/** The texts of these scripts that Redis refuses, with its errors. */
async function refusedOf(scripts: readonly (readonly [list: readonly Policy[], script: string])[]) {
  const refused: string[] = []
  for (const [list, script] of scripts) {
    const load = client.script('LOAD', script)
    await load.catch((error: unknown) =>
      refused.push(`${list.map(({ shape }) => shape).join()}: ${String(error)}`),
    )
  }
  return refused
}

describe.each([
  ['plain', undefined, false],
  ['with a penalty', penalty, false],
  ['with reservations', undefined, true],
  ['with both', penalty, true],
] as const)('scripts compile, %s', (_, given, reserves) => {
  it('of one shape, for every length of a list', async () => {
    const lists = shapes.flatMap((shape) => Array.from({ length: MOST }, (_unused, i) => times(shape, i + 1)))
    expect(await refusedOf(lists.map((list) => [list, composeScript(list, given, reserves)]))).toEqual([])
  })

  it('of the longest lists of several shapes', async () => {
    const lists = [
      ...shapes.map((shape) => [...times(calendar, MOST - 1), shape]),
      ...shapes.map((__, first) =>
        times(shapes[0]!, MOST).map((___, i) => shapes[(first + i) % shapes.length]!),
      ),
      ...others.map((___, first) =>
        times(shapes[0]!, MOST).map((____, i) => others[(first + i) % others.length]!),
      ),
    ]
    expect(await refusedOf(lists.map((list) => [list, composeScript(list, given, reserves)]))).toEqual([])
  })

  it('of calls on several keys', async () => {
    const lists = shapes.map((shape) => ({ policies: times(shape, MOST), penalty: given, reserves }))
    const all = Array.from({ length: 32 }, (__, i) => lists[i % lists.length]!)
    const scripts = [...lists.map((list) => [list]), all].map(
      (known) => [known[0]!.policies, composeTogether(known)] as const,
    )
    expect(await refusedOf(scripts)).toEqual([])
  })
})

describe.each([
  ['plain', {}],
  ['with a penalty', { penalty: { after: 2, block: '1m' } as const }],
  ['with reservations', { reservations: { max: 3 } }],
  ['with both', { reservations: { max: 3 }, penalty: { after: 2, block: '1m' } as const }],
])('the longest lists are decided, %s', (_, options) => {
  const held = shapes.filter(
    ({ algorithm }) => !('reservations' in options) || !algorithm.drains || algorithm.name.endsWith('slots'),
  )
  it.each(held.map((shape) => [shape.shape, shape] as const))('%s', async (__, shape) => {
    await client.flushall()
    const policies = times(shape, MOST).map((policy, i) => policy.with({ name: `p${i}` }))
    const tier = policies.map((policy) => policy.with({ limit: 50 }))
    const store = redisStore(client, { denialCache: false })
    const settings = { store, onStoreError: 'throw', deadline: '10s', tiers: [tier] } as const
    const limiter = createLimiter({ name: 'longest', policies, ...settings, ...options })
    const decision = await limiter.consume('k', { cost: 10 })
    expect(await decision.settle(4)).toBe(-6)
    let left = 96
    if ('reservations' in options) {
      const { allowed, reservation } = await limiter.reserve('k', { cost: 5, ttl: '1m' })
      expect(allowed).toBe(true)
      expect((await limiter.peek('k')).policies[MOST - 1]).toMatchObject({ held: 5 })
      expect(await reservation!.settle(3)).toEqual({ units: -2, late: false })
      left -= 3
    }
    const { remaining } = await limiter.consume('k', { cost: 1, policies: tier })
    expect(remaining).toBe(tier[0]!.capacity - (100 - left) - 1)
    await limiter.charge('k', { cost: 100 })
    const denied = [1, 2].map(() => limiter.consume('k', { cost: 2 }))
    expect((await Promise.all(denied)).map(({ allowed }) => allowed)).toEqual([false, false])
    expect((await limiter.peek('k', { cost: 0 })).reason).toBe('penalty' in options ? 'blocked' : undefined)
    await store.close()
  })
})
