import { expectWarnings } from '@sluice/harness/warnings'
import { FakeClock, installFakeClock } from '@sluice/testing'
import {
  createLimiter,
  fixedWindow,
  gcra,
  type Limiter,
  type LimiterOptions,
  memoryStore,
  type Policy,
  slidingLog,
} from '../../src/index.js'

/* Reservations of keys that are blocked, held, overridden or suspended meanwhile, and beside charges that are undone. */

const WHO = { reason: 'a campaign', by: 'ops', until: '1h' } as const
const TEN = [fixedWindow({ limit: 10, window: '1d' })]

let clock: FakeClock
beforeEach(() => void (clock = new FakeClock()))

const open = (policies: LimiterOptions['policies'] = TEN, options: Partial<LimiterOptions> = {}): Limiter =>
  createLimiter({
    name: 'beside',
    policies,
    store: memoryStore({ clock: clock.now }),
    reservations: {},
    ...options,
  })

const reserved = async (limiter: Limiter, cost: number, ttl: `${number}s` | `${number}m`) =>
  (await limiter.reserve('k', { cost, ttl })).reservation!

describe('the wait of a denial while units are reserved', () => {
  it.each(['window', 'fresh'] as const)('lasts until the block that it begins is over: %s', async (then) => {
    if (then === 'fresh') expectWarnings(['PENALTY_FRESH'])
    const limiter = open(TEN, { penalty: { after: 1, block: '10m', then } })
    await reserved(limiter, 10, '30s')
    expect(await limiter.consume('k')).toMatchObject({ reason: 'limit', retryAfterMs: 600_000 })
    expect(await limiter.consume('k')).toMatchObject({ reason: 'blocked', retryAfterMs: 600_000 })
    clock.pass(600_000)
    expect((await limiter.consume('k', { cost: 10 })).allowed).toBe(true)
  })

  it.each([
    ['hold', 'held', 5, 60_000],
    ['block', 'blocked', 5, 60_000],
    ['hold', 'held', 90, 90_000],
    ['block', 'blocked', 90, 90_000],
  ] as const)('is no longer for a %s: %s for %i s', async (act, reason, seconds, retryAfterMs) => {
    const limiter = open()
    await reserved(limiter, 10, '60s')
    await limiter[act]('k', `${seconds}s`)
    for (const ask of ['consume', 'peek'] as const)
      expect(await limiter[ask]('k')).toMatchObject({ reason, retryAfterMs, policies: [{ held: 10 }] })
    clock.pass(retryAfterMs)
    expect((await limiter.consume('k')).allowed).toBe(true)
  })

  it('counts what drains after an end that lies before the end of a hold', async () => {
    const limiter = open([gcra({ limit: 10, window: '100s' })])
    limiter.on('warning', () => {})
    await limiter.consume('k', { cost: 4 })
    await reserved(limiter, 6, '10s')
    await limiter.hold('k', '20s')
    const { retryAfterMs } = await limiter.peek('k', { cost: 10 })
    expect(retryAfterMs).toBe(50_000)
    clock.pass(retryAfterMs - 1)
    expect((await limiter.peek('k', { cost: 10 })).allowed).toBe(false)
    clock.pass(1)
    expect((await limiter.peek('k', { cost: 10 })).allowed).toBe(true)
  })

  it('lets a call wait for a hold to end and units to come back', async () => {
    const time = installFakeClock()
    const limiter = open([fixedWindow({ limit: 1, window: '365d' })], { store: memoryStore() })
    await limiter.reserve('k', { ttl: '300ms' })
    await limiter.hold('k', '100ms')
    const waits = limiter.acquire('k', { maxWait: '2s' })
    await time.pass(2000)
    expect((await waits).allowed).toBe(true)
    time.restore()
  })
})

it('a block after which a key begins anew forgets its reservations', async () => {
  expectWarnings(['PENALTY_FRESH', 'RESERVATION_LATE'])
  const limiter = open(TEN, { penalty: { after: 1, block: '1m', then: 'fresh' } })
  const reservation = await reserved(limiter, 10, '5m')
  await limiter.consume('k')
  clock.pass(60_000)
  expect((await limiter.peek('k')).policies).toMatchObject([{ used: 0, held: 0 }])
  expect(await reservation.settle(8)).toEqual({ units: 8, late: true })
})

it('a reservation is never extended to an earlier end, so that its real cost is charged once it has ended', async () => {
  expectWarnings(['RESERVATION_LATE'])
  const limiter = open([fixedWindow({ limit: 200, window: '1d' })])
  await reserved(limiter, 1, '20m')
  const reservation = await reserved(limiter, 100, '10m')
  await reservation.extend('5s')
  clock.pass(6000)
  expect((await limiter.peek('k')).policies).toMatchObject([{ used: 101, held: 101 }])
  expect(await limiter.reservation('k', reservation.id).settle(90)).toEqual({ units: -10, late: false })
  const late = await reserved(limiter, 100, '10m')
  await late.extend('5s')
  clock.pass(600_000)
  expect(await limiter.reservation('k', late.id).settle(100)).toEqual({ units: 100, late: true })
})

describe('a reservation by its id', () => {
  const suspended = fixedWindow({ limit: 0, window: '1d' })
  const used = async (limiter: Limiter) => (await limiter.peek('k')).policies[0]!.used

  it('is settled where only an override lets the key pass', async () => {
    const limiter = open([suspended])
    await limiter.override('k', { limit: 100, ...WHO })
    const { id } = await reserved(limiter, 50, '1m')
    expect(await limiter.reservation('k', id).settle(60)).toEqual({ units: 10, late: false })
    clock.pass(60_000)
    expect(await used(limiter)).toBe(60)
  })

  it.each([
    ['a limit of 0', { limit: 0 }],
    ['an exemption', { exempt: true }],
  ] as const)('is settled in the state that it was made in, under %s since', async (_, given) => {
    const limiter = open()
    const { id } = await reserved(limiter, 5, '1m')
    await limiter.override('k', { ...given, force: true, ...WHO })
    expect(await limiter.reservation('k', id).settle(7)).toEqual({ units: 2, late: false })
    await limiter.removeOverride('k')
    expect(await used(limiter)).toBe(7)
  })

  it.each(['by the object that reserved', 'by its id'])(
    'is settled under the override since, %s',
    async (how) => {
      expectWarnings(['RESERVATION_DRAINS'])
      const limiter = open([gcra({ limit: 60_000, window: '1m' })])
      const reservation = await reserved(limiter, 5, '1m')
      await limiter.override('k', { limit: 10, force: true, ...WHO })
      for (let i = 0; i < 5; i++) await limiter.consume('k')
      clock.pass(150)
      await (how === 'by its id' ? limiter.reservation('k', reservation.id) : reservation).settle(4)
      expect((await limiter.peek('k')).remaining).toBe(0)
    },
  )

  it('drains no faster under an override of 0 than the limit says', async () => {
    expectWarnings(['RESERVATION_DRAINS'])
    const limiter = open([gcra({ limit: 10, window: '1m' })])
    await limiter.consume('k', { cost: 4 })
    const { id } = await reserved(limiter, 5, '1m')
    await limiter.override('k', { limit: 0, force: true, ...WHO })
    clock.pass(150)
    await limiter.reservation('k', id).settle(8)
    await limiter.removeOverride('k')
    expect((await limiter.peek('k')).remaining).toBe(0)
  })

  it('is settled once the limit is 0', async () => {
    let policies: readonly Policy[] = TEN
    const limiter = open(() => policies)
    const { id } = await reserved(limiter, 5, '1m')
    policies = [suspended]
    expect(await limiter.reservation('k', id).settle(7)).toEqual({ units: 2, late: false })
    policies = TEN
    expect(await used(limiter)).toBe(7)
  })
})

it('a look at reserved units of a log leaves alone what a charge would put back that is undone', async () => {
  const store = memoryStore({ clock: clock.now })
  const log = [slidingLog({ limit: 10, window: '1h' })]
  const keyspace = store.keyspace('log', log, () => {}, undefined, { max: 10 })
  const { reservations } = keyspace
  const now = clock.now()
  const reserve = { key: 'k', id: 1, cost: 3, ttl: 60_000_000, atEnd: 0 }
  await reservations!.reserve(reserve)
  clock.pass(1)
  const { booking } = await keyspace.decide('commit', 'k', 1, 0)
  await keyspace.decide('peek', 'k', 1, 0)
  expect(await keyspace.cancel(booking!)).toBe(true)
  const change = { key: 'k', id: 1, decidedAt: now, end: now + 60_000_000, kind: 'settle', units: 0 } as const
  expect(await reservations!.change(change)).toMatchObject({ state: 'settled', effect: -3 })
  expect((await keyspace.decide('peek', 'k', 1, 0)).remaining).toBe(10)
})
