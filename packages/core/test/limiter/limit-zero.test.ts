import { everyPolicy } from '@sluice/testing/internal'
import {
  createLimiter,
  gcra,
  memoryStore,
  type Policy,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '../../src/index.js'
import type { Store } from '../../src/stores/store.js'
import { FakeClock } from '@sluice/testing'

const none = { limit: 0, window: '1m' } as const

/** A memory store that lists what it is asked. */
function recordingStore(clock: FakeClock): { readonly store: Store; readonly asked: string[] } {
  const inner = memoryStore({ clock: clock.now })
  const asked: string[] = []
  const store: Store = {
    local: true,
    now: () => inner.now(),
    close: () => inner.close(),
    keyspace(name, policies, report) {
      const keyspace = inner.keyspace(name, policies, report)
      return {
        policies,
        decide: (...call) => (asked.push(call[0]), keyspace.decide(...call)),
        confirm: (booking) => keyspace.confirm(booking),
        cancel: (booking) => keyspace.cancel(booking),
        correct: (change) => (asked.push(change.kind), keyspace.correct(change)),
      }
    },
  }
  return { store, asked }
}

describe('a limit of 0', () => {
  let clock: FakeClock
  beforeEach(() => void (clock = new FakeClock()))
  const open = (policies: readonly Policy[], enforce = true) => {
    const { store, asked } = recordingStore(clock)
    return { limiter: createLimiter({ name: 'tiers', policies, store, enforce }), asked }
  }

  it.each<readonly [title: string, policy: Policy]>([
    ...everyPolicy({ limit: 0, window: 60_000 }),
    ['a bucket with a capacity', tokenBucket({ ...none, capacity: 5 })],
    ['gcra with a burst', gcra({ ...none, burst: 5, slots: 4 })],
  ])('denies every cost of %s and asks no store', async (_, policy) => {
    const { limiter, asked } = open([policy])
    const denial = { allowed: false, reason: 'limit', limit: 0, remaining: 0, retryAfterMs: Infinity }
    for (const decision of [
      limiter.decide('k'),
      await limiter.consume('k', { cost: 3 }),
      await limiter.peek('k'),
      await limiter.acquire('k', { maxWait: '1d' }),
    ])
      expect(decision).toMatchObject({
        ...denial,
        policy: policy.name,
        resetAfterMs: 0,
        policies: [{ used: 0 }],
      })
    expect(asked).toEqual([])
  })

  it('lets a cost of 0 read that nothing is left', async () => {
    const { limiter, asked } = open([gcra(none)])
    expect(await limiter.consume('k', { cost: 0 })).toMatchObject({
      allowed: true,
      remaining: 0,
      retryAfterMs: 0,
    })
    expect(asked).toEqual([])
  })

  it('denies whatever the other policies of the list would admit, and names the policy that is 0', async () => {
    const { limiter } = open([
      gcra({ limit: 5, window: '1s', name: 'burst' }),
      slidingLog({ ...none, name: 'tier' }),
    ])
    const decision = await limiter.consume('k')
    expect(decision).toMatchObject({ allowed: false, policy: 'tier', remaining: 0, retryAfterMs: Infinity })
    expect(decision.policies).toMatchObject([
      { name: 'burst', remaining: 0, used: 0, retryAfterMs: 0 },
      { name: 'tier', remaining: 0, used: 0, retryAfterMs: Infinity, limit: 0 },
    ])
  })

  it('suspends a tier, and leaves the state to the others', async () => {
    const { limiter } = open([gcra({ limit: 5, window: '1m' })])
    const suspended = { policies: [gcra(none)] }
    await limiter.consume('k', { cost: 2 })
    expect(await limiter.consume('k', suspended)).toMatchObject({ allowed: false })
    await limiter.charge('k', { ...suspended, cost: 3 })
    await limiter.refund('k', { ...suspended, cost: 3 })
    expect(await limiter.peek('k')).toMatchObject({ allowed: true, remaining: 3 })
  })

  it('blocks, holds and resets the key for all tiers', async () => {
    const { limiter, asked } = open([gcra({ limit: 5, window: '1m' })])
    const suspended = { policies: [gcra(none)] }
    await limiter.block('k', '1h', suspended)
    expect(await limiter.consume('k')).toMatchObject({ reason: 'blocked' })
    await limiter.reset('k', suspended)
    expect(await limiter.consume('k')).toMatchObject({ allowed: true, remaining: 4 })
    await limiter.hold('k', '1s', suspended)
    expect(await limiter.consume('k')).toMatchObject({ reason: 'held' })
    expect(asked).toEqual(['block', 'consume', 'reset', 'consume', 'hold', 'consume'])
  })

  it('lets everything pass in shadow mode', async () => {
    const { limiter } = open([gcra(none)], false)
    expect(await limiter.consume('k')).toMatchObject({ allowed: true, wouldDeny: true, reason: 'limit' })
  })

  it('is a number that another may take the place of', () => {
    expect(gcra({ ...none, burst: 7 }).with({ limit: 3 })).toMatchObject({ limit: 3, capacity: 7 })
    expect(slidingLog(none).with({ limit: 3 })).toMatchObject({ limit: 3, capacity: 3 })
    expect(gcra({ limit: 3, window: '1m' }).with({ limit: 0 })).toMatchObject({ limit: 0, capacity: 0 })
  })

  it('leaves the other options checked', () => {
    expect(() => gcra({ ...none, burst: 0 })).toThrow('burst must be a whole number from 1 to 2^52, got 0')
    expect(() => slidingWindow({ limit: 0, window: '10s', buckets: 7 })).toThrow('buckets must divide')
  })
})
