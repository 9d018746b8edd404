import { expectWarnings } from '@sluice/harness/warnings'
import * as fc from 'fast-check'
import { FakeClock } from '@sluice/testing'
import { findShapes } from '@sluice/testing/internal'
import {
  consumeAll,
  createLimiter,
  type Decision,
  gcra,
  type Limiter,
  type LimiterOptions,
  memoryStore,
  peekAll,
  type Policy,
  slidingLog,
} from '../../src/index.js'
import { RemoteStore } from '@sluice/harness/stores'

/*
 * Calls that are denied whatever their store says: their other fields come from a peek at the store, or in an outage from the
 * state in this process, and never from nowhere.
 */

const policies = [gcra({ limit: 10, window: '10s' }), slidingLog({ limit: 5, window: '1h', name: 'least' })]
const ABOVE = 6
/** Settings under which a store is waited for, however busy the machine is. */
const PATIENT = { deadline: '1m', onStoreError: 'throw' } as const
const MODES = ['local', { mode: 'local', share: 2 }, 'allow', 'deny', 'throw'] as const

let clock: FakeClock
let store: RemoteStore
let limiter: Limiter
beforeEach(() => {
  clock = new FakeClock()
  store = new RemoteStore(clock.now)
  limiter = open()
})
const open = (options: Partial<LimiterOptions> = {}): Limiter =>
  createLimiter({ name: 'api', policies, store, deadline: '1m', ...options })

describe('a cost above the capacity', () => {
  it('is denied with what the store says of the key', async () => {
    const memory = open({ store: memoryStore({ clock: clock.now }) })
    for (const each of [limiter, memory]) await each.consume('k', { cost: 2 })
    clock.pass(100)
    const of = async (asked: Limiter): Promise<readonly Decision[]> => [
      await asked.consume('k', { cost: ABOVE }),
      await asked.acquire('k', { cost: ABOVE, maxWait: '1m' }),
      await asked.peek('k', { cost: ABOVE }),
      await asked.consume('k', { cost: 11 }),
    ]
    const decisions = await of(limiter)
    expect(decisions.map((each) => each.toJSON())).toEqual((await of(memory)).map((each) => each.toJSON()))
    expect(decisions[0]).toMatchObject({
      reason: 'cost',
      policy: 'least',
      remaining: 3,
      retryAfterMs: Infinity,
    })
  })

  it('says what was used as of the peek, and 0 once that has drained', async () => {
    const fast = open({ name: 'fast', policies: [gcra({ limit: 10, window: '1s' })] })
    const used: number[] = []
    await fast.charge('k', { cost: 12 })
    for (const ms of [0, 1199, 1]) {
      clock.pass(ms)
      used.push((await fast.consume('k', { cost: 11 })).policies[0]!.used)
    }
    expect(used).toEqual([12, 1, 0])
  })

  it('peeks once a second and key, however many calls are made and of whatever cost', async () => {
    const ask = (cost: number) => limiter.consume('k', { cost })
    for (let second = 0; second < 3; second++) {
      await Promise.all(Array.from({ length: 100 }, (_, i) => ask(ABOVE + i)))
      clock.pass(999.999)
      for (let i = 0; i < 100; i++)
        expect(limiter.decide('k', { cost: ABOVE + i })).not.toBeInstanceOf(Promise)
      expect(store.arrived).toEqual(Array(second + 1).fill('peek'))
      clock.pass(0.001)
    }
    await limiter.consume('other', { cost: ABOVE })
    expect(store.count('peek')).toBe(4)
  })

  it('peeks once a second under each list of limits', async () => {
    const tiers = [1, 2, 3, 4].map((limit) => [slidingLog({ limit, window: '1h' })])
    limiter = open({ policies: tiers[0]! })
    for (let i = 0; i < 40; i++) {
      const tier = tiers[i % 4]!
      const { remaining, limit } = await limiter.consume('k', { cost: 5, policies: tier })
      expect([remaining, limit]).toEqual([tier[0]!.limit, tier[0]!.limit])
    }
    expect(store.arrived).toEqual(Array(4).fill('peek'))
  })

  it('remembers 10,000 keys at most', async () => {
    const ask = async (count: number) => {
      for (let i = 0; i < count; i++) await limiter.consume(`${i}`, { cost: ABOVE })
      return store.count('peek')
    }
    expect(await ask(10_000)).toBe(10_000)
    expect(await ask(10_000)).toBe(10_000)
    await limiter.consume('one more', { cost: ABOVE })
    const before = store.count('peek')
    expect(await ask(10_000)).toBeGreaterThan(before)
  })

  it('counts the time until the reset from when the store said it', async () => {
    await limiter.consume('k', { cost: 5 })
    const first = await limiter.consume('k', { cost: ABOVE })
    clock.pass(700)
    const later = limiter.decide('k', { cost: ABOVE }) as Decision
    expect(later).toMatchObject({ remaining: 0, resetAfterMs: first.resetAfterMs - 700 })
  })

  it.each<[string, () => Promise<unknown>, number]>([
    ['a reset', () => limiter.reset('k'), 5],
    ['a refund', () => limiter.refund('k'), 3],
    ['a charge whether it fits or not', () => limiter.charge('k'), 1],
    ['a block', () => limiter.block('k', '1m'), 0],
    ['a hold', () => limiter.hold('k', '1m'), 0],
    ['a call', () => limiter.consume('k', { cost: 2 }), 0],
    ['a call that is settled', async () => (await limiter.consume('k', { cost: 2 })).settle(1), 1],
    ['a call of several keys', () => consumeAll(['k', 'other'].map((key) => ({ limiter, key }))), 1],
    ['a limiter of the same state', () => open().reset('k'), 5],
  ])('says what is left after %s of this process', async (_, change, left) => {
    await limiter.consume('k', { cost: 3 })
    expect(await limiter.consume('k', { cost: ABOVE })).toMatchObject({ remaining: 2 })
    await change()
    expect(await limiter.consume('k', { cost: ABOVE })).toMatchObject({ reason: 'cost', remaining: left })
  })

  it('is reported as decided by the store, and then by the cache', async () => {
    const seen: string[] = []
    limiter.on('decision', ({ decidedBy }) => seen.push(decidedBy))
    for (let i = 0; i < 2; i++) await limiter.consume('k', { cost: ABOVE })
    store.fail('STORE_OOM')
    await limiter.consume('other', { cost: ABOVE })
    expect(seen).toEqual(['store', 'cache', 'local'])
  })

  describe.each(MODES)('under onStoreError %j', (onStoreError) => {
    const left = typeof onStoreError === 'object' ? 2 : 5
    beforeEach(() => void (limiter = open({ onStoreError })))
    const denial = { allowed: false, reason: 'cost', policy: 'least', limit: 5, retryAfterMs: Infinity }

    it('is denied by itself where the store fails, with what this process knows', async () => {
      store.fail('STORE_OOM')
      for (let i = 0; i < 3; i++)
        for (const decision of [
          await limiter.consume('k', { cost: ABOVE }),
          await limiter.acquire('k', { cost: ABOVE }),
          await limiter.peek('k', { cost: ABOVE }),
        ])
          expect(decision).toMatchObject({
            ...denial,
            degraded: 'oom',
            remaining: left,
            policies: [
              { limit: 10, retryAfterMs: 0 },
              { limit: 5, retryAfterMs: Infinity },
            ],
          })
      expect(store.arrived.filter((each) => each === 'peek').length).toBe(4)
    })

    it('is denied by itself where the store is known to be down, without a wait', async () => {
      jest.useFakeTimers({ now: Date.UTC(2026, 0, 1) })
      limiter = open({ onStoreError, deadline: '50ms' })
      try {
        store.fail('STORE_UNAVAILABLE')
        for (let i = 0; i < 10; i++) {
          await limiter.consume('other').catch(() => {})
          await jest.advanceTimersByTimeAsync(20)
        }
        expect(limiter.decide('k', { cost: ABOVE })).toMatchObject({ ...denial, degraded: 'unavailable' })
      } finally {
        jest.useRealTimers()
      }
    })

    it('would be denied in shadow mode, by itself and beside others', async () => {
      store.fail('STORE_OOM')
      const shadow = open({ onStoreError, enforce: false, name: 'shadow' })
      const seen = { allowed: true, wouldDeny: true, reason: 'cost', degraded: 'oom' }
      expect(await shadow.consume('k', { cost: ABOVE })).toMatchObject(seen)
      if (onStoreError === 'throw') return
      const whole = consumeAll([
        { limiter, key: 'k' },
        { limiter: shadow, key: 'k', cost: ABOVE },
      ])
      expect((await whole).decisions[1]).toMatchObject(seen)
    })
  })

  it('is denied at the deadline where the store stands still, which is asked again a second later', async () => {
    jest.useFakeTimers({ now: Date.UTC(2026, 0, 1) })
    limiter = open({ deadline: '50ms' })
    try {
      await limiter.consume('k', { cost: 2 })
      store.stop()
      const calls = Promise.all([1, 2, 3].map(() => limiter.consume('k', { cost: ABOVE })))
      await jest.advanceTimersByTimeAsync(60)
      for (const decision of await calls)
        expect(decision).toMatchObject({ reason: 'cost', degraded: 'timeout', remaining: 5 })
      expect(limiter.decide('k', { cost: ABOVE })).toMatchObject({ degraded: 'timeout', remaining: 5 })
      store.recover()
      clock.pass(1000)
      expect(await limiter.consume('k', { cost: ABOVE })).toMatchObject({ degraded: undefined, remaining: 3 })
      expect(store.count('peek')).toBe(2)
    } finally {
      jest.useRealTimers()
    }
  })

  it('rejects once the store is closed, as any call', async () => {
    store.close()
    await expect(limiter.consume('k', { cost: ABOVE })).rejects.toMatchObject({ code: 'CLOSED' })
  })

  it('costs a leased key a peek a second too', async () => {
    const leased = open({ leases: { ttl: '1m' }, policies: [gcra({ limit: 100, window: '1h' })] })
    for (let i = 0; i < 9; i++)
      expect(await leased.consume('k', { cost: 101 })).toMatchObject({ reason: 'cost' })
    expect(store.arrived).toEqual(['peek'])
  })
})

describe('a call on several keys that is known to be denied', () => {
  const DENIALS = { maxAge: 1_000_000, maxKeys: 100 }
  const hourly = (limit: number): Policy[] => [slidingLog({ limit, window: '1h' })]
  let other: RemoteStore
  let strict: Limiter
  let roomy: Limiter
  beforeEach(() => {
    store = new RemoteStore(clock.now, DENIALS)
    other = new RemoteStore(clock.now)
    strict = open({ name: 'strict', policies: [gcra({ limit: 2, window: '3s', burst: 1 })] })
    roomy = open({ name: 'roomy', policies: hourly(3), store: other })
  })
  const call = (cost = 1) =>
    consumeAll([
      { limiter: strict, key: 'k' },
      { limiter: roomy, key: 'k', cost },
    ])

  it('waits for its other keys too', async () => {
    await strict.consume('k')
    await strict.consume('k') // from here on its denial is remembered
    await roomy.charge('k', { cost: 3 })
    const whole = await call()
    expect(whole).toMatchObject({ allowed: false, retryAfterMs: 3_600_000 })
    expect(whole.decisions).toMatchObject([{ retryAfterMs: 1500 }, { allowed: false, reason: 'limit' }])
    expect(other.arrived).toEqual(['charge', 'peek'])
  })

  it('says how its other keys stand, and asks about them once a second', async () => {
    await strict.consume('k')
    await strict.consume('k')
    await roomy.consume('k')
    for (let i = 0; i < 9; i++) {
      const { decisions } = await call()
      expect(decisions[1]).toMatchObject({ allowed: true, charged: false, remaining: 2, limit: 3 })
      expect(decisions[1]!.degraded).toBe(undefined)
    }
    expect((await call(3)).decisions[1]).toMatchObject({ allowed: false, reason: 'limit', remaining: 2 })
    expect(other.arrived).toEqual(['consume', 'peek'])
    clock.pass(1000)
    await strict.consume('k')
    await call()
    expect(other.count('peek')).toBe(2)
  })

  it('asks about them where a key of this process denies, a limit is 0, or a cost never fits', async () => {
    const here = open({ name: 'here', policies: hourly(1), store: memoryStore({ clock: clock.now }) })
    await here.consume('k')
    await roomy.consume('k', { cost: 2 })
    for (const denying of [
      { limiter: here, key: 'k' },
      { limiter: open({ name: 'none', policies: hourly(0) }), key: 'k' },
      { limiter: strict, key: 'k', cost: 2 },
    ]) {
      const whole = await consumeAll([denying, { limiter: roomy, key: 'k' }])
      expect(whole.decisions).toMatchObject([{ allowed: false }, { allowed: true, remaining: 1 }])
    }
    expect(other.arrived).toEqual(['consume', 'peek'])
  })

  it.each(MODES)(
    'says how they stand in this process while their store fails, under onStoreError %j',
    async (onStoreError) => {
      roomy = open({ name: 'roomy', policies: hourly(3), store: other, onStoreError })
      await strict.consume('k')
      await strict.consume('k')
      other.fail('STORE_OOM')
      const left = typeof onStoreError === 'object' ? 1 : 3
      for (let i = 0; i < 3; i++) {
        const whole = await call()
        expect(whole).toMatchObject({ allowed: false, retryAfterMs: 1500 })
        expect(whole.decisions[1]).toMatchObject({
          allowed: true,
          charged: false,
          degraded: 'oom',
          remaining: left,
        })
      }
      expect(other.arrived).toEqual(['peek'])
    },
  )

  it('charges nothing, and counts for no penalty of its other keys', async () => {
    const penalty = { after: 1, block: '2h' } as const
    roomy = open({ name: 'roomy', policies: hourly(3), store: other, penalty })
    await roomy.consume('k', { cost: 3 })
    await strict.consume('k')
    await strict.consume('k')
    for (let i = 0; i < 9; i++) expect(await call()).toMatchObject({ retryAfterMs: 3_600_000 })
    expect(await roomy.peek('k')).toMatchObject({ reason: 'limit' })
  })

  it('names no block or hold `limit` that a cost above the capacity has hidden', async () => {
    await roomy.hold('k', '1m')
    await roomy.consume('k', { cost: 4 })
    await strict.consume('k')
    await strict.consume('k')
    expect((await call()).decisions[1]).toMatchObject({ reason: 'held' })
  })
})

describe('whatever is called, with one process', () => {
  const { shapes } = findShapes()
  const units = fc.integer({ min: 1, max: 12 })
  const list = fc.array(fc.tuple(fc.constantFrom(...shapes), fc.constantFrom(100, 1000, 10_000), units), {
    minLength: 1,
    maxLength: 3,
  })
  const policiesOf = (
    drawn: readonly (readonly [(typeof shapes)[number], number, number])[],
  ): readonly Policy[] =>
    drawn.map(([{ factory, variant }, window, limit], i) =>
      factory({ ...variant, window, limit }).with({ name: `${i}` }),
    )
  const steps = fc.array(
    fc.record({
      kind: fc.constantFrom(
        'call',
        'call',
        'call',
        'call',
        'whole',
        'whole',
        'block',
        'hold',
        'reset',
        'refund',
        'pass',
      ),
      cost: fc.integer({ min: 0, max: 14 }),
      us: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 2000 }), fc.integer({ min: 1, max: 3_000_000 })),
    }),
    { minLength: 2, maxLength: 7 },
  )

  it('a guarded store that remembers nothing decides as memory does, in every field', async () => {
    expectWarnings([], { perhaps: ['STORE_FORGETS'] })
    let unasked = 0
    await fc.assert(
      fc.asyncProperty(list, list, steps, async (one, two, calls) => {
        let now = Date.UTC(2026, 0, 1) * 1000
        const clock = () => now
        const [elsewhere, memory] = [new RemoteStore(clock), memoryStore({ clock })].map((store) => ({
          one: createLimiter({ name: 'one', policies: policiesOf(one), store, ...PATIENT }),
          two: createLimiter({ name: 'two', policies: policiesOf(two), store, ...PATIENT }),
        }))
        for (const { kind, cost, us } of calls) {
          const perform = async ({ one, two }: NonNullable<typeof memory>) => {
            if (kind === 'call') return [await one.consume('k', { cost })]
            const parts = [one, two].map((limiter, i) => ({ limiter, key: 'k', cost: i ? cost : 1 }))
            if (kind === 'whole') return (await consumeAll(parts)).decisions
            if (kind === 'block' || kind === 'hold') await one[kind]('k', '300ms')
            else if (kind !== 'pass') await one[kind]('k')
            return []
          }
          now += us + 1_000_000 // nothing is remembered for longer
          const [actual, expected] = [await perform(elsewhere!), await perform(memory!)]
          unasked += actual.filter(({ reason }) => reason === 'cost').length
          expect(actual.map((each) => each.toJSON())).toEqual(expected.map((each) => each.toJSON()))
        }
      }),
      { numRuns: 10_000 },
    )
    expect(unasked).toBeGreaterThan(1000)
  }, 300_000)

  it('one that remembers denies a cost above the capacity with what memory says is left at most, and no whole too short a wait', async () => {
    let denied = 0
    await fc.assert(
      fc.asyncProperty(list, list, steps, async (one, two, calls) => {
        let now = Date.UTC(2026, 0, 1) * 1000
        const stores = [0, 1].map(() => new RemoteStore(() => now, { maxAge: 1_000_000, maxKeys: 100 }))
        const limiters = [one, two].map((drawn, i) =>
          createLimiter({ name: 'api', policies: policiesOf(drawn), store: stores[i]!, ...PATIENT }),
        )
        for (const { kind, cost, us } of calls) {
          now += us
          const parts = limiters.map((limiter, i) => ({ limiter, key: 'k', cost: i ? cost : 1 }))
          if (kind === 'whole') {
            const exact = await peekAll(parts)
            const whole = await consumeAll(parts)
            expect(whole.allowed).toBe(exact.allowed)
            expect(whole.retryAfterMs).toBeGreaterThanOrEqual(exact.retryAfterMs)
            if (!whole.allowed) denied++
          } else if (kind === 'call') {
            const exact = await limiters[0]!.peek('k', { cost })
            const decision = await limiters[0]!.consume('k', { cost })
            expect(decision.allowed).toBe(exact.allowed)
            if (exact.reason !== 'cost') continue
            expect(decision).toMatchObject({
              reason: 'cost',
              policy: exact.policy,
              limit: exact.limit,
              degraded: undefined,
            })
            expect(decision.remaining).toBeLessThanOrEqual(exact.remaining)
            expect(Math.abs(decision.resetAfterMs - exact.resetAfterMs)).toBeLessThanOrEqual(1)
          } else if (kind === 'block' || kind === 'hold') await limiters[0]![kind]('k', '300ms')
          else if (kind !== 'pass') await limiters[0]![kind]('k')
        }
      }),
      { numRuns: 3000 },
    )
    expect(denied).toBeGreaterThan(500)
  }, 300_000)
})
