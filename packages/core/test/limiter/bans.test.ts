import { RemoteStore } from '@sluice/harness/stores'
import { FakeClock } from '@sluice/testing'
import {
  createLimiter,
  gcra,
  type LimiterOptions,
  memoryStore,
  PolicyError,
  slidingLog,
} from '../../src/index.js'
import { expectWarnings } from '@sluice/harness/warnings'

const free = [gcra({ limit: 2, window: '1m' })]
const paid = [slidingLog({ limit: 100, window: '1h' })]
const team = [gcra({ limit: 10, window: '1s' }), slidingLog({ limit: 1000, window: '1d' })]
const lists = [free, paid, team]

let clock: FakeClock
beforeEach(() => void (clock = new FakeClock()))

const open = (options: Partial<LimiterOptions> = {}) =>
  createLimiter({
    name: 'api',
    policies: free,
    store: memoryStore({ clock: clock.now }),
    tiers: [paid, team],
    ...options,
  })
type Limited = ReturnType<typeof open>

/** The reasons of a call under each list. */
async function reasons(limiter: Limited, under = lists): Promise<(string | undefined)[]> {
  const decisions = await Promise.all(under.map((policies) => limiter.peek('k', { policies })))
  return decisions.map(({ reason }) => reason)
}

describe('a block of a key', () => {
  it.each(['block', 'hold'] as const)('by %s is under the own list and every declared one', async (kind) => {
    const limiter = open()
    await limiter[kind]('k', '10m')
    const reason = kind === 'block' ? 'blocked' : 'held'
    expect(await reasons(limiter)).toEqual([reason, reason, reason])
    await limiter.reset('k')
    expect(await reasons(limiter)).toEqual([undefined, undefined, undefined])
  })

  it.each(['block', 'hold'] as const)('by %s leaves what was used to be read', async (kind) => {
    const limiter = open({ policies: team, tiers: [] })
    await limiter.consume('k', { cost: 2 })
    await limiter[kind]('k', '10m')
    clock.pass(100)
    for (const decision of [await limiter.peek('k'), await limiter.consume('k')])
      expect(decision.policies).toMatchObject([
        { remaining: 0, used: 1 },
        { remaining: 0, used: 2 },
      ])
  })

  it('is under the lists that calls have brought, and under one that comes with it', async () => {
    const limiter = open({ tiers: [] })
    await limiter.consume('k', { policies: paid })
    await limiter.block('k', '10m')
    expect(await reasons(limiter)).toEqual(['blocked', 'blocked', undefined])
    await limiter.block('k', '10m', { policies: team })
    expect(await reasons(limiter)).toEqual(['blocked', 'blocked', 'blocked'])
  })

  it('is under every declared list, and as many others as the store holds lists of shapes, the latest', async () => {
    expectWarnings(['SHAPES_FULL'])
    const brought = [1, 2, 3].map((seconds) => [gcra({ limit: 5, window: `${seconds}s` })])
    const limiter = open({ store: memoryStore({ clock: clock.now, maxShapes: 5 }) })
    for (const policies of brought) await limiter.consume('k', { policies })
    await limiter.block('k', '10m')
    expect(await reasons(limiter)).toEqual(['blocked', 'blocked', 'blocked'])
    expect(await reasons(limiter, brought)).toEqual([undefined, 'blocked', 'blocked'])
  })

  it('ends with unblock under all of them, where what was consumed and a hold stay', async () => {
    const limiter = open()
    for (const policies of lists) await limiter.consume('k', { policies, cost: 2 })
    await limiter.block('k', '10m')
    await limiter.unblock('k')
    expect(await reasons(limiter)).toEqual(['limit', undefined, undefined])
    expect(await limiter.peek('k', { policies: paid })).toMatchObject({ remaining: 98 })
    await limiter.hold('k', '1m')
    await limiter.block('k', '10m')
    await limiter.unblock('k')
    expect(await reasons(limiter)).toEqual(['held', 'held', 'held'])
  })

  it('that is ended where there was none makes no key', async () => {
    const store = memoryStore({ clock: clock.now })
    await open({ store }).unblock('k')
    expect(store.size).toBe(0)
  })

  it('costs a call nothing: it asks the store once, under its own list', async () => {
    const store = new RemoteStore(clock.now)
    const limiter = open({ store, penalty: { block: '10m' } })
    for (let i = 0; i < 2; i++) await limiter.consume('k')
    await limiter.block('k', '10m')
    await limiter.consume('k')
    expect(store.arrived).toEqual(['consume', 'consume', 'block', 'block', 'block', 'consume'])
  })

  it.each([[5], ['free'], [{}], [[5]], [[[]]], [[[{}]]]])('is under no lists like %j', (tiers) => {
    expect(() => open({ tiers: tiers as never })).toThrow(PolicyError)
  })
})

describe("a penalty's block", () => {
  const penalty = { block: '10m', after: 1 } as const
  const refuse = async (limiter: Limited, how: 'consume' | 'acquire' = 'consume') => {
    for (let i = 0; i < 2; i++) await limiter.consume('k')
    return how === 'consume' ? limiter.consume('k') : limiter.acquire('k', { maxWait: 0 })
  }

  it.each(['consume', 'acquire'] as const)(
    'that %s begins is under the other lists until the same instant',
    async (how) => {
      const limiter = open({ penalty })
      expect(await refuse(limiter, how)).toMatchObject({ reason: 'limit', retryAfterMs: 600_000 })
      expect(await reasons(limiter)).toEqual(['blocked', 'blocked', 'blocked'])
      clock.pass(600_000 - 1)
      expect(await reasons(limiter)).toEqual(['blocked', 'blocked', 'blocked'])
      clock.pass(1)
      expect(await reasons(limiter)).toEqual([undefined, undefined, undefined])
    },
  )

  it('lasts no longer under the others where the call itself would pass later', async () => {
    const limiter = open({ policies: [slidingLog({ limit: 1, window: '1h' })], tiers: [team], penalty })
    await refuse(limiter)
    clock.pass(600_000)
    expect(await reasons(limiter, [team])).toEqual([undefined])
  })

  it('never shortens the block of an operator under another list', async () => {
    const store = memoryStore({ clock: clock.now })
    const other = open({ store, policies: paid, tiers: [] })
    await other.block('k', '1h')
    await refuse(open({ store, penalty }))
    clock.pass(3_600_000 - 1)
    expect(await reasons(other, [paid, team])).toEqual(['blocked', undefined])
  })

  it('that begins in an outage is under the other lists of this process', async () => {
    const store = new RemoteStore(clock.now)
    const limiter = open({ store, penalty })
    store.fail('STORE_UNAVAILABLE')
    await refuse(limiter)
    expect(await reasons(limiter)).toEqual(['blocked', 'blocked', 'blocked'])
  })
})

describe('in an outage', () => {
  /** Two processes of one store: each has a store object of its own. */
  const pair = () => {
    const store = new RemoteStore(clock.now)
    const elsewhere: typeof store = Object.assign(Object.create(store) as typeof store, {
      keyspace: store.keyspace.bind(store),
      now: store.now.bind(store),
    })
    return { store, elsewhere }
  }

  it.each(['local', 'allow'] as const)(
    'a process keeps the blocks that it made or met (%s)',
    async (onStoreError) => {
      const { store, elsewhere } = pair()
      const limiter = open({ store, onStoreError })
      await open({ store: elsewhere }).block('k', '10m')
      await limiter.consume('k')
      await limiter.block('made', '10m')
      store.fail('STORE_UNAVAILABLE')
      expect(await limiter.consume('k')).toMatchObject({ reason: 'blocked', degraded: 'unavailable' })
      expect(await limiter.consume('made', { policies: paid })).toMatchObject({ reason: 'blocked' })
      expect(await limiter.consume('free')).toMatchObject({ allowed: true })
      clock.pass(600_000)
      expect(await limiter.consume('k')).toMatchObject({ allowed: true })
    },
  )

  it('a process does not keep one whose end it has met', async () => {
    const { store, elsewhere } = pair()
    const [limiter, other] = [open({ store }), open({ store: elsewhere })]
    await limiter.block('k', '10m')
    await limiter.consume('k')
    await other.unblock('k')
    await limiter.consume('k')
    store.fail('STORE_UNAVAILABLE')
    expect(await limiter.consume('k')).toMatchObject({ allowed: true, degraded: 'unavailable' })
  })

  it('an answer to a call from before the block ends none', async () => {
    const store = new RemoteStore(clock.now)
    const limiter = open({ store, deadline: '1m' })
    store.holdReplies()
    const [before, block] = [limiter.consume('k'), limiter.block('k', '10m')]
    store.recover()
    expect((await before).allowed).toBe(true)
    await block
    store.fail('STORE_UNAVAILABLE')
    expect(await limiter.consume('k')).toMatchObject({ reason: 'blocked' })
  })
})
