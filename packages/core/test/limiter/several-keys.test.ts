import {
  consumeAll,
  createLimiter,
  decideAll,
  type Decision,
  type DecisionEvent,
  gcra,
  type Limiter,
  type LimiterOptions,
  memoryStore,
  peekAll,
  type Policy,
  slidingLog,
  StoreError,
  type WholeDecision,
} from '../../src/index.js'
import { FakeClock } from '@sluice/testing'
import { RemoteStore } from '@sluice/harness/stores'

const hourly = (limit: number): Policy[] => [slidingLog({ limit, window: '1h' })]
const lasting = { onStoreError: 'throw', deadline: '10s' } as const

let clock: FakeClock
beforeEach(() => void (clock = new FakeClock()))
const limiterOf = (name: string, limit: number, options: Partial<LimiterOptions> = {}): Limiter =>
  createLimiter({ name, policies: hourly(limit), store: memoryStore({ clock: clock.now }), ...options })
const failingClock = (): number => {
  throw new Error('no time')
}
const remainingOf = async (limiter: Limiter, key: string) => (await limiter.peek(key)).remaining

/** Two limiters of each kind of set-up, and what is asked of a store elsewhere. */
const SET_UPS = {
  'in one memory store': () => {
    const store = memoryStore({ clock: clock.now })
    return { store, other: store }
  },
  'in two memory stores': () => ({
    store: memoryStore({ clock: clock.now }),
    other: memoryStore({ clock: clock.now }),
  }),
  'in memory and elsewhere': () => ({
    store: memoryStore({ clock: clock.now }),
    other: new RemoteStore(clock.now),
  }),
  'in two stores elsewhere': () => ({ store: new RemoteStore(clock.now), other: new RemoteStore(clock.now) }),
}

describe.each(Object.entries(SET_UPS))('a call on several keys, %s,', (_, setUp) => {
  let tenants: Limiter
  let users: Limiter
  const call = (user: string): Promise<WholeDecision> =>
    consumeAll([
      { limiter: tenants, key: 'acme' },
      { limiter: users, key: user, cost: 2 },
    ])

  beforeEach(() => {
    const { store, other } = setUp()
    tenants = limiterOf('tenants', 100, { store, ...lasting })
    users = limiterOf('users', 20, { store: other, ...lasting })
  })

  it('charges none of the keys once one of them denies', async () => {
    for (let i = 0; i < 60; i++) expect((await call('ada')).allowed).toBe(i < 10)
    expect(await remainingOf(tenants, 'acme')).toBe(90)
    expect((await call('ben')).allowed).toBe(true)
    expect(await remainingOf(tenants, 'acme')).toBe(89)
  })

  it('says what each part would have been by itself, and which one binds', async () => {
    for (let i = 0; i < 10; i++) await call('ada')
    const denied = await call('ada')
    expect(denied).toMatchObject({ allowed: false, retryAfterMs: 3_600_000 })
    expect(denied.denied).toBe(denied.decisions[1])
    expect(denied.decisions).toMatchObject([
      { limiter: 'tenants', key: 'acme', allowed: true, charged: false, remaining: 90, retryAfterMs: 0 },
      { limiter: 'users', key: 'ada', allowed: false, charged: false, remaining: 0, reason: 'limit' },
    ])
    expect(await denied.settle(0)).toEqual([0, 0])
    expect(await remainingOf(tenants, 'acme')).toBe(90)
  })

  it('is settled as a whole', async () => {
    const whole = await call('ada')
    expect(await whole.settle([0, 5])).toEqual([-1, 3])
    await expect(whole.settle([0, 5])).rejects.toMatchObject({ code: 'ALREADY_SETTLED' })
    expect([await remainingOf(tenants, 'acme'), await remainingOf(users, 'ada')]).toEqual([100, 15])
    expect(await (await call('ben')).settle(3)).toEqual([2, 1])
  })

  it('is settled in no part where one of the real costs cannot be', async () => {
    const whole = await call('ada')
    await expect(whole.settle([0, NaN])).rejects.toMatchObject({ code: 'INVALID_COST' })
    expect(await whole.settle([0, 5])).toEqual([-1, 3])
  })

  it('is exact where many come at once', async () => {
    const wholes = await Promise.all(Array.from({ length: 400 }, (_each, i) => call(`user ${i % 20}`)))
    expect(wholes.filter(({ allowed }) => allowed)).toHaveLength(100)
    expect(await remainingOf(tenants, 'acme')).toBe(0)
    const left = await Promise.all(Array.from({ length: 20 }, (_each, i) => remainingOf(users, `user ${i}`)))
    expect(left.reduce((sum, units) => sum + (20 - units), 0)).toBe(200)
  })

  it('leaves the other keys what they would have had, however often one denies', async () => {
    const { store, other } = setUp()
    const drained = { policies: [gcra({ limit: 100, window: '1h' })], store, ...lasting }
    const [tenant, user] = [
      limiterOf('gcra', 0, drained),
      limiterOf('other', 1, { store: other, ...lasting }),
    ]
    const parts = [
      { limiter: tenant, key: 'acme' },
      { limiter: user, key: 'ada' },
    ]
    expect((await consumeAll(parts)).allowed).toBe(true)
    clock.pass(36_000)
    for (let i = 0; i < 10_000; i++) expect((await consumeAll(parts)).allowed).toBe(false)
    expect(await remainingOf(tenant, 'acme')).toBe(100)
  })

  it('ends where 16 calls cross on 16 keys, in either order', async () => {
    const { store, other } = setUp()
    const parts = Array.from({ length: 16 }, (_each, i) => {
      return { limiter: limiterOf('crossing', 8, { store: i % 2 ? store : other, ...lasting }), key: `${i}` }
    })
    const calls = Array.from({ length: 16 }, (_each, i) => consumeAll(i % 2 ? parts : parts.toReversed()))
    const allowed = (await Promise.all(calls)).filter((whole) => whole.allowed).length
    expect(allowed).toBeLessThanOrEqual(8)
    for (const { limiter, key } of parts) expect(await remainingOf(limiter, key)).toBe(8 - allowed)
  })

  it('takes settling, blocks and resets of its keys in between', async () => {
    const whole = await call('ada')
    await users.block('ada', '1h')
    expect((await call('ada')).denied).toMatchObject({ limiter: 'users', reason: 'blocked' })
    await tenants.reset('acme')
    expect(await whole.settle([0, 1])).toEqual([0, -1])
    await users.unblock('ada')
    expect((await call('ada')).allowed).toBe(true)
    expect([await remainingOf(tenants, 'acme'), await remainingOf(users, 'ada')]).toEqual([99, 17])
  })

  it('reads without a charge', async () => {
    const parts = [
      { limiter: tenants, key: 'acme' },
      { limiter: users, key: 'ada', cost: 21 },
    ]
    expect(await peekAll(parts)).toMatchObject({ allowed: false, retryAfterMs: Infinity })
    expect(await remainingOf(tenants, 'acme')).toBe(100)
  })

  it('charges a part in shadow mode only with the whole', async () => {
    const { store } = setUp()
    const shadow = limiterOf('shadow', 1, { store, ...lasting, enforce: false })
    const parts = [
      { limiter: users, key: 'ada', cost: 11 },
      { limiter: shadow, key: 'ada' },
    ]
    expect((await consumeAll(parts)).decisions).toMatchObject([{ charged: true }, { charged: true }])
    expect(await consumeAll(parts)).toMatchObject({
      allowed: false,
      decisions: [{ allowed: false }, { allowed: true, wouldDeny: true, charged: false }],
    })
    const others = [{ limiter: tenants, key: 'acme' }, parts[1]!]
    expect(await consumeAll(others)).toMatchObject({
      allowed: true,
      decisions: [{ charged: true }, { allowed: true, wouldDeny: true, charged: false }],
    })
  })
})

describe('the parts of a call on several keys', () => {
  it('are one where limiter, key and policies are the same', async () => {
    const limiter = limiterOf('one', 10)
    const part = { limiter, key: 'k', cost: 4 }
    const whole = await consumeAll([part, part])
    expect(whole.decisions).toMatchObject([{ remaining: 2 }, { remaining: 2 }])
    expect(await consumeAll([part, part])).toMatchObject({ allowed: false })
    expect(await whole.settle([1, 2])).toEqual([-5, -5])
    expect(await remainingOf(limiter, 'k')).toBe(7)
  })

  it.each([
    ['no list', () => 'all', /list of 1 to 16 parts/],
    ['no part', () => [], /list of 1 to 16 parts/],
    [
      '17 parts',
      (limiter: Limiter) => Array.from({ length: 17 }, (_, i) => ({ limiter, key: `${i}` })),
      /1 to 16/,
    ],
    ['a part that is none', () => [null], /takes an object of options/],
    ['no limiter', () => [{ limiter: {}, key: 'k' }], /must be made by createLimiter/],
    ['an unknown option', (limiter: Limiter) => [{ limiter, key: 'k', costs: 3 }], /did you mean 'cost'/],
    ['an option without a name', (limiter: Limiter) => [{ limiter, key: 'k', '': 3 }], /no option ''/],
    [
      'another list of one key',
      (limiter: Limiter) => [
        { limiter, key: 'k' },
        { limiter, key: 'k', policies: hourly(3) },
      ],
      /into one list/,
    ],
  ])('are refused: %s', async (_, parts, message) => {
    const call = consumeAll(parts(limiterOf('one', 10)) as never)
    await expect(call).rejects.toMatchObject({
      name: 'InputError',
      code: 'INVALID_OPTION',
      message: expect.stringMatching(message),
    })
  })

  it('are refused where two limiters share one state', () => {
    const store = memoryStore()
    const parts = [1, 2].map(() => ({ limiter: limiterOf('same', 10, { store }), key: 'k' }))
    expect(() => decideAll(parts)).toThrow(/same key in two parts/)
  })

  it('are decided at once where all stores are in the process', () => {
    const limiter = limiterOf('one', 10)
    const whole = decideAll([
      { limiter, key: 'a' },
      { limiter, key: 'b' },
    ])
    expect(whole).toMatchObject({ allowed: true })
    expect(JSON.parse(JSON.stringify(whole))).toMatchObject({
      allowed: true,
      decisions: [{ key: 'a' }, { key: 'b' }],
    })
  })

  it('are decided at one instant in one memory store, whose clock goes on after it', () => {
    let reads = 0
    const store = memoryStore({ clock: () => clock.now() + ++reads })
    const [tenants, users] = [limiterOf('tenants', 2, { store }), limiterOf('users', 1, { store })]
    for (const isAllowed of [true, false]) {
      const before = reads
      const parts = ['a', 'b', 'c'].map((key) => ({ limiter: tenants, key }))
      const whole = decideAll([...parts, { limiter: users, key: 'a' }]) as WholeDecision
      expect([whole.allowed, reads - before]).toEqual([isAllowed, 1])
    }
    const before = reads
    expect((users.decide('b') as Decision).allowed).toBe(true)
    expect(reads - before).toBe(1)
  })

  it("are decided at one instant in several memory stores on the system's clock, which goes on after it", () => {
    const limiters = [2, 1].map((limit) => createLimiter({ policies: hourly(limit) }))
    const reads = jest.spyOn(performance, 'now')
    for (const limiter of limiters) void limiter.decide('e')
    const expectReads = (expected: number, act: () => unknown) => {
      reads.mockClear()
      act()
      expect(reads).toHaveBeenCalledTimes(expected)
    }
    const decideBoth = () => decideAll(limiters.map((limiter) => ({ limiter, key: 'a' })))
    expectReads(1, () => expect(decideBoth()).toMatchObject({ allowed: true }))
    expectReads(1, () => expect(decideBoth()).toMatchObject({ allowed: false }))
    expectReads(2, () => void limiters.map((limiter) => limiter.decide('b')))
    const broken = limiterOf('broken', 1, { store: memoryStore({ clock: failingClock }) })
    expect(() => decideAll([...limiters, broken].map((limiter) => ({ limiter, key: 'c' })))).toThrow(
      'no time',
    )
    expectReads(2, () => void limiters.map((limiter) => limiter.decide('d')))
    reads.mockRestore()
  })

  it('are decided as by consume where there is one', async () => {
    const store = new RemoteStore(clock.now)
    const limiter = limiterOf('one', 1, { store, ...lasting })
    expect(await consumeAll([{ limiter, key: 'k' }])).toMatchObject({
      allowed: true,
      decisions: [{ charged: true }],
    })
    expect(store.arrived).toEqual(['consume'])
  })
})

describe('what is known of a part', () => {
  it.each([
    ['a limit of 0', { policies: hourly(0) }, 1, 1],
    ['a cost that never fits', {}, 11, 2],
  ])('denies the whole, of which stores only say how its keys stand: %s', async (_, options, cost, peeks) => {
    const store = new RemoteStore(clock.now)
    const here = limiterOf('here', 10)
    const elsewhere = limiterOf('elsewhere', 10, { store, ...lasting })
    const denying = limiterOf('denying', 10, { store, ...lasting, ...options })
    const whole = await consumeAll([
      { limiter: here, key: 'k' },
      { limiter: elsewhere, key: 'k' },
      { limiter: denying, key: 'k', cost },
    ])
    expect(whole).toMatchObject({ allowed: false, retryAfterMs: Infinity })
    expect(whole.decisions).toMatchObject([
      { remaining: 10 },
      { allowed: true, charged: false, remaining: 10 },
      { allowed: false },
    ])
    expect(store.arrived).toEqual(Array(peeks).fill('peek'))
  })

  it('is a denial that the store gave a moment ago', async () => {
    const store = new RemoteStore(clock.now, { maxAge: 1_000_000, maxKeys: 10 })
    const [roomy, strict] = [
      limiterOf('roomy', 10, { store, ...lasting }),
      limiterOf('strict', 1, { store, ...lasting }),
    ]
    const parts = [
      { limiter: roomy, key: 'k' },
      { limiter: strict, key: 'k' },
    ]
    for (let i = 0; i < 9; i++) await consumeAll(parts)
    expect(store.arrived).toEqual(['try', 'try', 'commit', 'commit', 'try', 'try', 'peek'])
  })
})

describe('a call on several keys that loses a race', () => {
  it('undoes what it charged, and counts for no penalty', async () => {
    const [one, two] = [new RemoteStore(clock.now), new RemoteStore(clock.now)]
    const penalty = { after: 1, block: '1h' } as const
    const roomy = limiterOf('roomy', 10, { store: one, ...lasting })
    const strict = limiterOf('strict', 1, { store: two, ...lasting, penalty })
    two.holdReplies()
    const whole = consumeAll([
      { limiter: roomy, key: 'k' },
      { limiter: strict, key: 'k' },
    ])
    await new Promise(setImmediate)
    const faster = strict.charge('k')
    two.recover()
    await faster
    expect(await whole).toMatchObject({
      allowed: false,
      decisions: [{ allowed: true, charged: false }, { reason: 'limit' }],
    })
    expect(one.arrived).toEqual(['try', 'commit', 'cancel'])
    expect(await remainingOf(roomy, 'k')).toBe(10)
    expect((await strict.peek('k')).reason).toBe('limit') // and not 'blocked'
  })

  it('undoes what it charged where a store fails', async () => {
    const [one, two] = [new RemoteStore(clock.now), new RemoteStore(clock.now)]
    const limiters = [
      limiterOf('one', 10, { store: one, ...lasting }),
      limiterOf('two', 10, { store: two, ...lasting }),
    ]
    one.holdReplies()
    const whole = consumeAll(limiters.map((limiter) => ({ limiter, key: 'k' })))
    await new Promise(setImmediate)
    two.fail('STORE_OOM')
    one.recover()
    await expect(whole).rejects.toMatchObject({ code: 'STORE_OOM' })
    expect(await remainingOf(limiters[0]!, 'k')).toBe(10)
  })
})

describe('a call on several keys whose stores stop answering', () => {
  const pass = (ms: number) => jest.advanceTimersByTimeAsync(ms)
  let stores: readonly [RemoteStore, RemoteStore]
  let limiters: Limiter[]
  beforeEach(() => {
    jest.useFakeTimers({ now: Date.UTC(2026, 0, 1) })
    jest.advanceTimersByTime(1)
    stores = [new RemoteStore(clock.now), new RemoteStore(clock.now)]
  })
  afterEach(() => jest.useRealTimers())

  /** Becomes the outcome of a call, which is answered by the first of two stores alone from its second step on. */
  const call = async (onStoreError: 'deny' | 'throw'): Promise<{ outcome?: unknown }> => {
    limiters = stores.map((store, i) => limiterOf(`${i}`, 10, { store, onStoreError }))
    const seen: { outcome?: unknown } = {}
    stores[1].holdReplies()
    consumeAll(limiters.map((limiter) => ({ limiter, key: 'k' }))).then(
      (whole) => (seen.outcome = whole.allowed),
      (error: { code: string }) => (seen.outcome = error.code),
    )
    await pass(40)
    stores[1].recover()
    stores[1].stop()
    return seen
  }
  const left = async () => Promise.all(limiters.map((limiter) => remainingOf(limiter, 'k')))

  it.each([
    ['throw', 'STORE_TIMEOUT'],
    ['deny', false],
  ] as const)('is answered by the deadline of its first step: %s', async (mode, outcome) => {
    const seen = await call(mode)
    await pass(9)
    expect(seen).toEqual({})
    await pass(11)
    expect(seen).toEqual({ outcome })
    expect(stores.map(({ arrived }) => arrived)).toEqual([
      ['try', 'commit', 'cancel'],
      ['try', 'commit'],
    ])
    stores[1].recover()
    await pass(1)
    expect(stores[1].arrived).toEqual(['try', 'commit', 'cancel'])
    expect(await left()).toEqual([10, 10])
  })

  it('waits for no undo beyond the deadline', async () => {
    const seen = await call('deny')
    await pass(1)
    stores[0].stop()
    await pass(19)
    expect(seen).toEqual({ outcome: false })
    for (const store of stores) store.recover()
    await pass(1)
    expect(await left()).toEqual([10, 10])
  })

  it('charges nothing once the deadline is over', async () => {
    limiters = stores.map((store, i) => limiterOf(`${i}`, 10, { store, onStoreError: 'allow' }))
    stores[1].stop()
    const whole = consumeAll(limiters.map((limiter) => ({ limiter, key: 'k' })))
    await pass(60)
    const degraded = { allowed: true, charged: false, degraded: 'timeout' }
    expect(await whole).toMatchObject({ allowed: true, decisions: [degraded, degraded] })
    expect(stores.map(({ arrived }) => arrived)).toEqual([['try'], ['try']])
  })

  it('says why a store is not connected whose first step took all of the time', async () => {
    limiters = stores.map((store, i) => limiterOf(`${i}`, 10, { store, onStoreError: 'allow' }))
    const down = new StoreError('STORE_UNAVAILABLE', 'connect ECONNREFUSED')
    Object.assign(stores[1], { trouble: () => down })
    stores[1].stop()
    const whole = consumeAll(limiters.map((limiter) => ({ limiter, key: 'k' })))
    await pass(60)
    expect(await whole).toMatchObject({ decisions: [{ degraded: 'timeout' }, { degraded: 'unavailable' }] })
  })
})

describe('a store that cannot decide', () => {
  it('leaves parts to their failure modes, all or none', async () => {
    const store = new RemoteStore(clock.now)
    const [tenants, users] = [limiterOf('tenants', 100, { store }), limiterOf('users', 10, { store })]
    store.fail('STORE_UNAVAILABLE')
    const call = () => consumeAll([tenants, users].map((limiter) => ({ limiter, key: 'k' })))
    for (let i = 0; i < 30; i++) expect((await call()).allowed).toBe(i < 10)
    const { decisions } = await call()
    expect(decisions).toMatchObject([{ remaining: 90, degraded: 'unavailable' }, { degraded: 'unavailable' }])
  })

  it('denies all where one part is to be denied', async () => {
    const store = new RemoteStore(clock.now)
    const counted = limiterOf('counted', 100, { store })
    const denied = limiterOf('denied', 100, { store, onStoreError: 'deny' })
    store.fail('STORE_UNAVAILABLE')
    const call = () => consumeAll([counted, denied].map((limiter) => ({ limiter, key: 'k' })))
    for (let i = 0; i < 3; i++)
      expect(await call()).toMatchObject({
        allowed: false,
        decisions: [{ remaining: 100 }, { reason: 'degraded' }],
      })
  })
})

describe('the events of a call on several keys', () => {
  it('say how many were decided together, and whether each was charged', async () => {
    const [tenants, users] = [limiterOf('tenants', 10), limiterOf('users', 1)]
    const events: DecisionEvent[] = []
    for (const limiter of [tenants, users]) limiter.on('decision', (event) => events.push(event))
    const parts = [tenants, users].map((limiter) => ({ limiter, key: 'k' }))
    await consumeAll(parts)
    await consumeAll(parts)
    await tenants.consume('k')
    expect(events).toMatchObject([
      { limiter: 'tenants', together: 2, charged: true },
      { limiter: 'users', together: 2, charged: true },
      { limiter: 'tenants', together: 2, charged: false, decision: { allowed: true } },
      { limiter: 'users', together: 2, charged: false, decision: { allowed: false } },
      { limiter: 'tenants', together: 1, charged: true },
    ])
  })

  it('count for the penalty of the part that denies alone', async () => {
    const penalty = { after: 2, block: '2h' } as const
    const [tenants, users] = [limiterOf('tenants', 10, { penalty }), limiterOf('users', 1, { penalty })]
    const parts = [tenants, users].map((limiter) => ({ limiter, key: 'k' }))
    for (let i = 0; i < 3; i++) await consumeAll(parts)
    expect((await consumeAll(parts)).denied).toMatchObject({ limiter: 'users', reason: 'blocked' })
    expect(await tenants.consume('k')).toMatchObject({ allowed: true, remaining: 8 })
  })
})

describe('a leased part', () => {
  it('takes its units from the lease, and puts them back where another part denies', async () => {
    const store = new RemoteStore(clock.now)
    const leased = limiterOf('leased', 1000, { store, ...lasting, leases: { ttl: '1m' } })
    const strict = limiterOf('strict', 2, { ...lasting })
    for (let i = 0; i < 9; i++) {
      clock.pass(10)
      await leased.consume('k')
    }
    const asked = store.arrived.length
    const call = () => consumeAll([leased, strict].map((limiter) => ({ limiter, key: 'k' })))
    const allowed = []
    for (let i = 0; i < 9; i++) allowed.push((await call()).allowed)
    expect(allowed.filter(Boolean)).toHaveLength(2)
    expect(store.arrived).toHaveLength(asked)
  })

  describe('of a call that loses a race', () => {
    /** A key with a lease, and the store that gave it. */
    const withLease = async () => {
      const store = new RemoteStore(clock.now)
      const leased = limiterOf('leased', 1000, { store, ...lasting, leases: { ttl: '1m' } })
      for (let i = 0; i < 9; i++) {
        clock.pass(10)
        await leased.consume('k')
      }
      return { store, leased }
    }
    /** Loses a race for another key, and calls `meanwhile` once the unit of the lease is taken. */
    const lose = async (leased: Limiter, meanwhile?: () => Promise<unknown>) => {
      const other = new RemoteStore(clock.now)
      const strict = limiterOf('strict', 1, { store: other, ...lasting })
      other.holdReplies()
      const whole = consumeAll([leased, strict].map((limiter) => ({ limiter, key: 'k' })))
      await new Promise(setImmediate)
      void strict.charge('k')
      other.recover()
      other.holdReplies()
      await new Promise(setImmediate)
      await meanwhile?.()
      other.recover()
      expect((await whole).allowed).toBe(false)
      expect(other.arrived).toEqual(['try', 'charge', 'commit'])
    }
    /** Calls that the lease serves until the store is asked. */
    const servedBy = async ({ store, leased }: Awaited<ReturnType<typeof withLease>>): Promise<number> => {
      const asked = store.arrived.length
      let calls = 0
      for (; store.arrived.length === asked; calls++) await leased.consume('k')
      return calls
    }

    it('takes its unit first, and puts it back', async () => {
      const [key, twin] = [await withLease(), await withLease()]
      for (let i = 0; i < 3; i++) await lose(key.leased)
      expect(key.store.arrived).toEqual(twin.store.arrived)
      expect(await servedBy(key)).toBe(await servedBy(twin))
    })

    it('lacks its unit while the other keys are asked', async () => {
      const [key, twin] = [await withLease(), await withLease()]
      let served = 0
      await lose(key.leased, async () => void (served = await servedBy(key)))
      expect(served).toBe((await servedBy(twin)) - 1)
    })

    it('gives its unit back to the store, if its lease has ended meanwhile', async () => {
      const { store, leased } = await withLease()
      await lose(leased, () => leased.reset('k'))
      expect(store.arrived.slice(-2)).toEqual(['reset', 'release'])
    })
  })
})
