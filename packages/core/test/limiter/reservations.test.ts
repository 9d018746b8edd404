import '@sluice/calendar'
import fc from 'fast-check'
import {
  createLimiter,
  createSemaphore,
  type Decision,
  type DecisionEvent,
  fixedWindow,
  gcra,
  type Limiter,
  memoryStore,
  type Policy,
  reserveAll,
  type ReserveOptions,
} from '../../src/index.js'
import { FakeClock } from '@sluice/testing'
import { mainShapes } from '@sluice/testing/internal'
import { RemoteStore } from '@sluice/harness/stores'
import { expectWarnings } from '@sluice/harness/warnings'

let clock: FakeClock
beforeEach(() => void (clock = new FakeClock()))
const DAILY = [fixedWindow({ limit: 100, window: '1d' })]
const budgetOf = (policies: readonly Policy[] = DAILY, options: object = {}): Limiter =>
  createLimiter({
    policies,
    store: memoryStore({ clock: clock.now }),
    name: 'budget',
    reservations: {},
    ...options,
  })
const left = async (limiter: Limiter, key = 'k') => {
  const { remaining, policies } = await limiter.peek(key)
  return { remaining, held: policies[0]!.held }
}
const reserved = async (limiter: Limiter, options: ReserveOptions = { cost: 40, ttl: '1m' }) =>
  (await limiter.reserve('k', options)).reservation!

describe('a reservation of a key with an override', () => {
  const WHO = { reason: 'a campaign', by: 'ops', until: '1h' } as const

  it('is charged under the limit of the override, in the state of all calls', async () => {
    const limiter = budgetOf()
    expect((await limiter.reserve('k', { cost: 150, ttl: '1m' })).allowed).toBe(false)
    await limiter.override('k', { limit: 200, ...WHO })
    const held = await limiter.reserve('k', { cost: 150, ttl: '1m' })
    expect(held.policies).toMatchObject([{ rule: 'override', limit: 200 }])
    expect(await left(limiter)).toEqual({ remaining: 50, held: 150 })
    await held.reservation!.settle(20)
    expect(await left(limiter)).toEqual({ remaining: 180, held: 0 })
  })

  it('holds nothing where the key is exempt, and is there', async () => {
    const limiter = budgetOf()
    await limiter.override('k', { exempt: true, ...WHO })
    const used = await limiter.using('k', { cost: 150, ttl: '1m' }, async (reservation) => {
      await reservation.settle(500)
      return 'used'
    })
    expect(used).toBe('used')
    await limiter.removeOverride('k')
    expect(await left(limiter)).toEqual({ remaining: 100, held: 0 })
  })
})

describe('a reservation', () => {
  it('is given back by the store at its end, with no process that does it', async () => {
    const limiter = budgetOf()
    for (let i = 0; i < 40; i++) await limiter.reserve('k', { cost: 2, ttl: '1m' })
    expect(await left(limiter)).toEqual({ remaining: 20, held: 80 })
    clock.pass(59_999)
    expect(await left(limiter)).toEqual({ remaining: 20, held: 80 })
    clock.pass(1)
    expect(await left(limiter)).toEqual({ remaining: 100, held: 0 })
    expect((await limiter.consume('k', { cost: 100 })).allowed).toBe(true)
  })

  it('keeps what stays charged at its end', async () => {
    const limiter = budgetOf()
    await reserved(limiter, { cost: 40, ttl: '1m', atEnd: 15 })
    clock.pass(60_000)
    expect(await left(limiter)).toEqual({ remaining: 85, held: 0 })
  })

  it.each([
    [10, -30, 90],
    [40, 0, 60],
    [70, 30, 30],
  ])('settles at %i once, a hundred times at once and by its id', async (real, units, remaining) => {
    const limiter = budgetOf()
    const reservation = await reserved(limiter)
    const other = (): Promise<unknown> => limiter.reservation('k', reservation.id).settle(real)
    const all = await Promise.all([reservation.settle(real), ...Array.from({ length: 100 }, other)])
    expect(new Set(all.map((one) => JSON.stringify(one)))).toEqual(
      new Set([JSON.stringify({ units, late: false })]),
    )
    expect(await left(limiter)).toEqual({ remaining, held: 0 })
    clock.pass(60_000)
    expect((await left(limiter)).remaining).toBe(remaining)
  })

  it('is late after its end: the real cost is charged then, once for a minute, from whichever process', async () => {
    const limiter = budgetOf()
    const warnings: string[] = []
    limiter.on('warning', ({ code }) => warnings.push(code))
    const reservation = await reserved(limiter)
    const again = () => limiter.reservation('k', reservation.id).settle(30)
    clock.pass(60_000)
    expect(await reservation.settle(25)).toEqual({ units: 25, late: true })
    for (let i = 0; i < 2; i++) {
      expect(await again()).toEqual({ units: 25, late: true })
      expect(await left(limiter)).toEqual({ remaining: 75, held: 0 })
      clock.pass(59_999)
    }
    expect(await again()).toEqual({ units: 30, late: true })
    expect(warnings).toEqual(['RESERVATION_LATE'])
  })

  it('is settled once where it is settled again after its end, also beside others that end unsettled', async () => {
    const limiter = budgetOf()
    const dead = await reserved(limiter, { cost: 5, ttl: '59s' })
    const reservation = await reserved(limiter)
    await reserved(limiter, { cost: 5, ttl: '61s' })
    await reservation.settle(25)
    const again = () => limiter.reservation('k', reservation.id).settle(25)
    expect(await again()).toEqual({ units: -15, late: false })
    clock.pass(60_000)
    for (let i = 0; i < 2; i++) {
      expect(await again()).toEqual({ units: 0, late: false })
      clock.pass(59_999)
    }
    expect(await left(limiter)).toEqual({ remaining: 75, held: 0 })
    expectWarnings(['RESERVATION_LATE'])
    expect(await limiter.reservation('k', dead.id).settle(4)).toEqual({ units: 4, late: true })
  })

  it('is settled once while others are settled, however late that is sent again', async () => {
    const limiter = budgetOf([fixedWindow({ limit: 1000, window: '1d' })])
    const first = await reserved(limiter)
    await first.settle(25)
    for (let i = 0; i < 10; i++) {
      clock.pass(30_000)
      await (await reserved(limiter)).settle(1)
    }
    expect(await limiter.reservation('k', first.id).settle(25)).toEqual({ units: 0, late: false })
    expect((await limiter.peek('k')).remaining).toBe(1000 - 25 - 10)
  })

  it('is told to be settled for nothing after its end, also where its mark is there still', async () => {
    const limiter = budgetOf()
    const [, settled] = [
      await reserved(limiter, { cost: 5, ttl: '10s' }),
      await reserved(limiter, { cost: 5, ttl: '15s' }),
    ]
    await reserved(limiter, { cost: 5, ttl: '100s' })
    expect(await settled.settle(2)).toEqual({ units: -3, late: false })
    clock.pass(12_000)
    await limiter.consume('k')
    expect(await limiter.reservation('k', settled.id).settle(2)).toEqual({ units: -3, late: false })
    clock.pass(8000)
    expect(await limiter.reservation('k', settled.id).settle(2)).toEqual({ units: 0, late: false })
  })

  it('is charged when it is settled after its end, however late, where others were settled', async () => {
    expectWarnings(['RESERVATION_LATE'])
    const limiter = budgetOf()
    const dead = await reserved(limiter)
    for (let i = 0; i < 10; i++) {
      clock.pass(30_000)
      await (await reserved(limiter)).settle(1)
    }
    expect(await dead.settle(25)).toEqual({ units: 25, late: true })
    expect((await left(limiter)).remaining).toBe(100 - 25 - 10)
  })

  it('is late where its state was lost', async () => {
    expectWarnings(['RESERVATION_LATE'])
    const limiter = budgetOf()
    const reservation = await reserved(limiter)
    await limiter.reset('k')
    expect(await reservation.settle(25)).toEqual({ units: 25, late: true })
    expect((await left(limiter)).remaining).toBe(75)
    const second = await reserved(limiter)
    await limiter.reset('k')
    clock.pass(1)
    await reserved(limiter)
    expect(await second.settle(5)).toEqual({ units: 5, late: true })
  })

  it('moves its end and what stays charged then', async () => {
    const limiter = budgetOf()
    const reservation = await reserved(limiter)
    clock.pass(30_000)
    await reservation.extend('1m', { atEnd: 30 })
    clock.pass(59_999)
    expect(await left(limiter)).toEqual({ remaining: 60, held: 40 })
    clock.pass(1)
    expect(await left(limiter)).toEqual({ remaining: 70, held: 0 })
    await expect(reservation.extend('1m')).rejects.toMatchObject({ code: 'RESERVATION_ENDED' })
  })

  it('is forgotten, four marks for each that may be open, and charges nothing when it is settled again', async () => {
    const limiter = budgetOf(DAILY, { reservations: { max: 1 } })
    const first = await reserved(limiter, { cost: 10, ttl: '1m' })
    await first.settle(1)
    for (let i = 0; i < 4; i++) await (await reserved(limiter, { cost: 10, ttl: '1m' })).settle(1)
    const again = limiter.reservation('k', first.id)
    expect(await again.settle(9)).toEqual({ units: 0, late: false })
    expect((await left(limiter)).remaining).toBe(95)
  })

  it('is forgotten until its latest end, which its id names', async () => {
    const limiter = budgetOf(DAILY, { reservations: { max: 1 } })
    const first = await reserved(limiter, { cost: 10, ttl: '1m' })
    await first.extend('10m')
    await first.settle(1)
    for (let i = 0; i < 4; i++) await (await reserved(limiter, { cost: 10, ttl: '10m' })).settle(1)
    clock.pass(61_000)
    expect(await limiter.reservation('k', first.id).settle(9)).toEqual({ units: 0, late: false })
    expect((await left(limiter)).remaining).toBe(95)
  })

  it('keeps a bounded number of marks, also of those that are settled late', async () => {
    expectWarnings(['RESERVATION_LATE'])
    const limiter = budgetOf([fixedWindow({ limit: 10_000, window: '1d' })], { reservations: { max: 1 } })
    const ids: string[] = []
    for (let i = 0; i < 6; i++) {
      ids.push((await reserved(limiter, { cost: 10, ttl: '1s' })).id)
      clock.pass(1000)
    }
    const used = async () => (await limiter.peek('k')).policies[0]!.used
    for (const id of [...ids, ...ids]) await limiter.reservation('k', id).settle(1)
    // Of four marks at most the oldest is forgotten, and so each of six comes too late.
    expect(await used()).toBe(12)
    for (const id of [...ids.slice(-2), ...ids.slice(-2)]) await limiter.reservation('k', id).settle(1)
    expect(await used()).toBe(12)
  })

  it('is denied beyond max on a key, and says when the next one ends', async () => {
    const limiter = budgetOf(DAILY, { reservations: { max: 2 } })
    await reserved(limiter, { cost: 1, ttl: '1m' })
    await reserved(limiter, { cost: 1, ttl: '2m' })
    const denied = await limiter.reserve('k', { cost: 1, ttl: '1m' })
    expect(denied).toMatchObject({ allowed: false, reason: 'reservations', retryAfterMs: 60_000 })
    expect((await limiter.reserve('other', { cost: 1, ttl: '1m' })).allowed).toBe(true)
    clock.pass(60_000)
    expect((await limiter.reserve('k', { cost: 1, ttl: '1m' })).allowed).toBe(true)
  })

  it('lets a denied call know when it passes if the open ones end unsettled', async () => {
    const limiter = budgetOf()
    await reserved(limiter, { cost: 50, ttl: '1m' })
    await reserved(limiter, { cost: 50, ttl: '2m', atEnd: 10 })
    expect(await limiter.consume('k', { cost: 50 })).toMatchObject({ allowed: false, retryAfterMs: 60_000 })
    expect(await limiter.consume('k', { cost: 60 })).toMatchObject({ allowed: false, retryAfterMs: 120_000 })
    expect((await limiter.consume('k', { cost: 91 })).retryAfterMs).toBeGreaterThan(120_000)
    clock.pass(120_000)
    expect((await limiter.consume('k', { cost: 90 })).allowed).toBe(true)
  })

  it('keeps its key in a full store until its end, and no longer', async () => {
    const store = memoryStore({ clock: clock.now, maxKeys: 1 })
    const sweep = (): boolean => (store as unknown as { sweep(): boolean }).sweep()
    const limiter = budgetOf([gcra({ limit: 100, window: '1s' })], { store })
    limiter.on('warning', () => {})
    const reservation = await reserved(limiter, { cost: 40, ttl: '1m' })
    clock.pass(2000)
    sweep()
    expect(store.size).toBe(1)
    expect(await reservation.settle(50)).toEqual({ units: 10, late: false })
    clock.pass(60_000)
    sweep()
    expect(store.size).toBe(1) // for its mark
    clock.pass(60_000)
    sweep()
    expect(store.size).toBe(0)
  })

  it('counts in a state of its own', async () => {
    const store = memoryStore({ clock: clock.now })
    const plain = createLimiter({ name: 'budget', policies: DAILY, store })
    await reserved(budgetOf(DAILY, { store }))
    expect((await plain.peek('k')).remaining).toBe(100)
  })

  it.each([
    undefined,
    {},
    { ttl: 0 },
    { ttl: '1m', cost: 0 },
    { ttl: '1m', cost: 2, atEnd: 3 },
    { ttl: '1m', max: 1 },
  ])('is refused with %p', async (options) => {
    await expect(budgetOf().reserve('k', options as ReserveOptions)).rejects.toMatchObject({
      code: expect.stringContaining('INVALID'),
    })
  })

  it('is for limiters that declare it, on stores that keep it', async () => {
    const plain = createLimiter({ policies: DAILY })
    await expect(plain.reserve('k', { ttl: '1m' })).rejects.toMatchObject({ code: 'INVALID_OPTION' })
    const store = new RemoteStore(clock.now)
    expect(() => budgetOf(DAILY, { store })).toThrow('keeps no reservations')
  })

  it('holds nothing in shadow mode where the call would be denied', async () => {
    const limiter = budgetOf(DAILY, { enforce: false })
    const decision = await limiter.reserve('k', { cost: 101, ttl: '1m' })
    expect([decision.allowed, decision.wouldDeny]).toEqual([true, true])
    expect(await decision.reservation!.settle(3)).toEqual({ units: 0, late: false })
  })
})

describe('using', () => {
  it('settles at the cost when its function returns, and at atEnd when it throws', async () => {
    const limiter = budgetOf()
    expect(await limiter.using('k', { cost: 40, ttl: '1m' }, () => 'done')).toBe('done')
    expect(await left(limiter)).toEqual({ remaining: 60, held: 0 })
    const fails = limiter.using('k', { cost: 40, ttl: '1m', atEnd: 5 }, () => Promise.reject(new Error('no')))
    await expect(fails).rejects.toThrow('no')
    expect(await left(limiter)).toEqual({ remaining: 55, held: 0 })
    await limiter.using('k', { cost: 40, ttl: '1m' }, (reservation) => reservation.settle(1))
    expect(await left(limiter)).toEqual({ remaining: 54, held: 0 })
  })

  it.each([
    ['', 0],
    [' where the store fails for half of its ttl', 30],
  ])('holds its units for as long as its function runs%s', async (_, outage) => {
    jest.useFakeTimers()
    const store = new RemoteStore(clock.now, undefined, true)
    const limiter = budgetOf(DAILY, { store, onStoreError: 'throw' })
    const used = limiter.using('k', { cost: 40, ttl: '1m' }, async (reservation) => {
      for (let second = 1; second < 300; second++) {
        if (second === 75 && outage > 0) store.fail('STORE_UNAVAILABLE')
        if (second === 75 + outage) store.recover()
        clock.pass(1000)
        await jest.advanceTimersByTimeAsync(1000)
      }
      jest.useRealTimers()
      expect(await left(limiter)).toEqual({ remaining: 60, held: 40 })
      return reservation.settle(30)
    })
    expect(await used).toEqual({ units: -10, late: false })
    expect(await left(limiter)).toEqual({ remaining: 70, held: 0 })
  })

  it('rejects where the call is denied', async () => {
    const denied = budgetOf().using('k', { cost: 101, ttl: '1m' }, () => {})
    await expect(denied).rejects.toMatchObject({ code: 'RESERVATION_DENIED', decision: { reason: 'cost' } })
  })

  it.each(['resolves', 'rejects'])('%s as its function does where the store fails to settle', async (how) => {
    const store = new RemoteStore(clock.now, undefined, true)
    const limiter = budgetOf(DAILY, { store })
    const warnings: string[] = []
    limiter.on('warning', ({ code }) => warnings.push(code))
    const used = limiter.using('k', { cost: 40, ttl: '1m' }, () => {
      store.fail('STORE_UNAVAILABLE')
      if (how === 'rejects') throw new Error('of the function')
      return 'of the function'
    })
    if (how === 'rejects') await expect(used).rejects.toThrow('of the function')
    else expect(await used).toBe('of the function')
    expect(warnings).toEqual(['SETTLE_FAILED'])
    store.recover()
    clock.pass(60_000)
    expect(await left(limiter)).toEqual({ remaining: 100, held: 0 })
  })

  it('settles at the real cost where the first settling failed', async () => {
    const store = new RemoteStore(clock.now, undefined, true)
    const limiter = budgetOf(DAILY, { store })
    const used = limiter.using('k', { cost: 40, ttl: '1m' }, async (reservation) => {
      store.fail('STORE_TIMEOUT')
      await reservation.settle(30).finally(() => store.recover())
    })
    await expect(used).rejects.toMatchObject({ code: 'STORE_TIMEOUT' })
    expect(await left(limiter)).toEqual({ remaining: 70, held: 0 })
  })

  it('resolves as its function does where its settling failed and the store was closed', async () => {
    const store = new RemoteStore(clock.now, undefined, true)
    const limiter = budgetOf(DAILY, { store })
    limiter.on('warning', () => {})
    const used = limiter.using('k', { cost: 40, ttl: '1m' }, async (reservation) => {
      store.fail('STORE_TIMEOUT')
      await reservation.settle(1).catch(() => {})
      store.close()
      expect(reservation.isSettled).toBe(false)
      await expect(reservation.settle(1)).rejects.toMatchObject({ code: 'CLOSED' })
      return 'used'
    })
    expect(await used).toBe('used')
  })

  it("passes in an outage under 'allow', with a reservation that holds nothing", async () => {
    const store = new RemoteStore(clock.now, undefined, true)
    const limiter = budgetOf(DAILY, { store, onStoreError: 'allow' })
    store.fail('STORE_UNAVAILABLE')
    const settled = await limiter.using('k', { cost: 40, ttl: '1m' }, (reservation) => reservation.settle(5))
    expect(settled).toEqual({ units: 0, late: false })
    const whole = await reserveAll([{ limiter, key: 'k', cost: 40, ttl: '1m' }])
    expect([whole.allowed, whole.reservations.length, limiter.held]).toEqual([true, 1, 0])
    store.recover()
    expect(await left(limiter)).toEqual({ remaining: 100, held: 0 })
  })
})

describe('reserveAll', () => {
  it('reserves units of all keys and takes permits, or does neither', async () => {
    const [month, day] = [budgetOf(), budgetOf([fixedWindow({ limit: 50, window: '1d' })], { name: 'day' })]
    const semaphore = createSemaphore({ limit: 1 })
    const call = (cost: number) =>
      reserveAll([
        { limiter: month, key: 'k', cost, ttl: '1m' },
        { limiter: day, key: 'k', cost, ttl: '1m' },
        { semaphore },
      ])
    const whole = await call(30)
    expect([whole.allowed, whole.reservations.length, semaphore.inUse]).toEqual([true, 2, 1])
    expect((await call(10)).denied?.reason).toBe('concurrency')
    await whole.release()
    const denied = await call(30)
    expect([denied.allowed, denied.denied?.limiter, semaphore.inUse]).toEqual([false, 'day', 0])
    expect([await left(month), await left(day)]).toEqual([
      { remaining: 70, held: 30 },
      { remaining: 20, held: 30 },
    ])
    expect(await whole.settle(10)).toEqual([-20, -20])
    expect([await left(month), await left(day)]).toEqual([
      { remaining: 90, held: 0 },
      { remaining: 40, held: 0 },
    ])
  })

  it('denies what parts of one key do not fit together, as consumeAll does', async () => {
    const limiter = budgetOf()
    const call = (...costs: number[]) =>
      reserveAll(costs.map((cost) => ({ limiter, key: 'k', ttl: '1m', cost })))
    expect((await call(60, 60)).denied).toMatchObject({ reason: 'cost', retryAfterMs: Infinity })
    expect((await call(60, 40)).allowed).toBe(true)
    expect((await call(1)).denied).toMatchObject({ reason: 'limit', retryAfterMs: 60_000 })
    expect(await left(limiter)).toEqual({ remaining: 0, held: 100 })
  })

  it('counts refusals for a penalty', async () => {
    const limiter = budgetOf(DAILY, { penalty: { after: 2, block: '10m' } })
    const call = () => reserveAll([{ limiter, key: 'k', cost: 60, ttl: '1m' }])
    expect((await call()).allowed).toBe(true)
    expect((await call()).denied?.reason).toBe('limit')
    expect((await limiter.peek('k', { cost: 0 })).allowed).toBe(true)
    expect((await call()).denied?.reason).toBe('limit')
    expect((await call()).denied).toMatchObject({ reason: 'blocked' })
  })

  it.each([
    ['a part is denied', 101],
    ['a race for units was lost', 60],
  ])('reports no part as charged where %s, and each part once', async (_, cost) => {
    const limiter = budgetOf()
    const events: DecisionEvent[] = []
    limiter.on('decision', (event) => events.push(event))
    const call = (key: string) =>
      reserveAll([
        { limiter, key, cost: 40, ttl: '1m' },
        { limiter, key: 'k', cost, ttl: '1m' },
      ])
    const [, whole] = await Promise.all([call('winner'), call('loser')])
    expect(whole.decisions.map(({ allowed, charged }) => [allowed, charged])).toEqual([
      [true, false],
      [false, false],
    ])
    expect(events.filter(({ decision }) => whole.decisions.includes(decision))).toMatchObject([
      { charged: false, together: 2, cost: 40 },
      { charged: false, together: 2, cost },
    ])
    expect(await left(limiter, 'loser')).toEqual({ remaining: 100, held: 0 })
  })

  it('reports the parts of an allowed call as charged, together', async () => {
    const limiter = budgetOf()
    const events: DecisionEvent[] = []
    limiter.on('decision', (event) => events.push(event))
    await reserveAll([1, 2].map((cost) => ({ limiter, key: 'k', ttl: '1m', cost })))
    expect(events).toMatchObject([
      { charged: true, together: 2, cost: 1 },
      { charged: true, together: 2, cost: 2 },
    ])
  })

  it.each([
    [[{ limiter: undefined, key: 'k', ttl: '1m' }], 'limiter of a part must be made by createLimiter()'],
    [[undefined], 'limiter of a part must be made by createLimiter()'],
    [[{ limiter: createLimiter({ policies: DAILY }), key: 'k', ttl: '1m' }], 'reservations: {}'],
    [[{ limiter: budgetOf, key: 'k' }], 'ttl must be'],
    [[{ limiter: budgetOf, key: 'k', ttl: '1m', maxWait: '1s' }], "there is no option 'maxWait'"],
    [[{ semaphore: { name: 'x' } }], 'semaphore of a part must be made by createSemaphore()'],
  ] as [any[], string][])('refuses %p before it takes a permit', async (wrong, message) => {
    const semaphore = createSemaphore({ limit: 1 })
    const given = wrong.map((part) => (part?.limiter === budgetOf ? { ...part, limiter: budgetOf() } : part))
    const asked = reserveAll([{ semaphore }, ...given])
    expect(semaphore.inUse).toBe(0)
    await expect(asked).rejects.toThrow(message)
    await expect(asked).rejects.toMatchObject({ code: expect.stringContaining('INVALID') })
    expect(semaphore.inUse).toBe(0)
  })

  it('gives permits back where a semaphore of a user throws at once', async () => {
    const semaphore = createSemaphore({ limit: 1 })
    const failing = {
      name: 'x',
      limitOf: () => 1,
      acquire: () => {
        throw new Error('at once')
      },
    }
    await expect(reserveAll([{ semaphore }, { semaphore: failing }])).rejects.toThrow('at once')
    expect(semaphore.inUse).toBe(0)
  })
})

describe.each(mainShapes().map((shape) => [shape.title, shape] as const))('%s', (_, shape) => {
  type Step =
    | readonly ['pass', number]
    | readonly ['consume', number]
    | readonly ['reserve', number, number, number]
    | readonly ['settle', number, number]
  const step: fc.Arbitrary<Step> = fc.oneof(
    fc.tuple(fc.constant('pass' as const), fc.integer({ min: 1, max: 900 })),
    fc.tuple(fc.constant('consume' as const), fc.integer({ min: 1, max: 6 })),
    fc.tuple(
      fc.constant('reserve' as const),
      fc.integer({ min: 1, max: 8 }),
      fc.integer({ min: 1, max: 1500 }),
      fc.integer({ min: 0, max: 1 }),
    ),
    fc.tuple(fc.constant('settle' as const), fc.nat(), fc.integer({ min: 0, max: 12 })),
  )

  it('ends a reservation as settle(atEnd) at that instant would', async () => {
    const { factory, variant, model } = shape
    const policy = factory({ limit: 20, ...(model.onlyWindow ? {} : { window: 1000 }), ...variant } as never)
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        clock = new FakeClock()
        const reference = createLimiter({
          name: 'reference',
          policies: [policy],
          store: memoryStore({ clock: clock.now }),
        })
        const limiter = budgetOf([policy])
        for (const each of [limiter, reference]) each.on('warning', () => {})
        let open: { mine: Decision; models: Decision; end: number; atEnd: number }[] = []
        for (const [kind, first, second = 0, third = 0] of steps) {
          if (kind === 'pass') {
            const until = clock.now() + first * 1000
            const ended = open.filter(({ end }) => end <= until).sort((one, other) => one.end - other.end)
            open = open.filter((each) => !ended.includes(each))
            for (const { models, end, atEnd } of ended) {
              clock.pass((end - clock.now()) / 1000)
              await models.settle(atEnd)
            }
            clock.pass((until - clock.now()) / 1000)
          } else if (kind === 'settle') {
            const [settled] = open.splice(first % Math.max(1, open.length), 1)
            if (settled) {
              const units = await settled.models.settle(second)
              expect((await settled.mine.reservation!.settle(second)).units).toBeCloseTo(units, 9)
            }
          } else {
            const atEnd = kind === 'reserve' ? third : 0
            const mine =
              kind === 'reserve'
                ? await limiter.reserve('k', { cost: first, ttl: second, atEnd })
                : await limiter.consume('k', { cost: first })
            const models = await reference.consume('k', { cost: first })
            expect(mine.allowed).toBe(models.allowed)
            if (kind === 'reserve' && mine.allowed)
              open.push({ mine, models, end: clock.now() + second * 1000, atEnd })
          }
          const [one, other] = [await limiter.peek('k'), await reference.peek('k')]
          expect([one.remaining, one.resetAfterMs]).toEqual([other.remaining, other.resetAfterMs])
        }
      }),
    )
  })

  it('denies a call until the wait ends, and allows it exactly then, if open reservations end unsettled', async () => {
    const { factory, variant, model } = shape
    const policy = factory({ limit: 20, ...(model.onlyWindow ? {} : { window: 1000 }), ...variant } as never)
    const holds = fc.array(
      fc.tuple(
        fc.integer({ min: 1, max: 8 }),
        fc.integer({ min: 1, max: 900 }),
        fc.integer({ min: 0, max: 1 }),
      ),
      { maxLength: 12 },
    )
    await fc.assert(
      fc.asyncProperty(holds, fc.integer({ min: 1, max: 20 }), async (reservations, cost) => {
        clock = new FakeClock()
        const limiter = budgetOf([policy])
        limiter.on('warning', () => {})
        for (const [units, ttl, atEnd] of reservations) {
          await limiter.reserve('k', { cost: units, ttl, atEnd })
          clock.pass(3)
        }
        const { allowed, retryAfterMs } = await limiter.peek('k', { cost })
        if (allowed) return
        clock.pass(retryAfterMs - 1)
        expect((await limiter.peek('k', { cost })).allowed).toBe(false)
        clock.pass(1)
        expect((await limiter.consume('k', { cost })).allowed).toBe(true)
      }),
    )
  })
})
