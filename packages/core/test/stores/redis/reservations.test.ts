import { monitor, startRedis } from '@sluice/harness/redis'
import { expectWarnings } from '@sluice/harness/warnings'
import {
  consumeAll,
  createLimiter,
  fixedWindow,
  gcra,
  type Limiter,
  type Reservation,
  reserveAll,
  slidingLog,
  slidingWindow,
} from '../../../src/index.js'
import { redisStore } from '../../../src/stores/redis/index.js'
import { oneRedis } from './one-redis.js'

const { client, server } = oneRedis()
const YEAR = [fixedWindow({ limit: 100, window: '365d' })]

let now: number
beforeEach(() => (now = 1_767_225_600_000_000))

/** A limiter that reserves, on a store of its own as another process has. */
function open(name: string, max = 10): Limiter {
  const store = redisStore(client, { clock: () => now })
  return createLimiter({ name, policies: YEAR, store, deadline: '10s', reservations: { max } })
}

async function reserved(limiter: Limiter, cost = 10): Promise<Reservation> {
  return (await limiter.reserve('k', { cost, ttl: '1m' })).reservation!
}

const stateOf = async (limiter: Limiter) => {
  const { used, held } = (await limiter.peek('k')).policies[0]!
  return [used, held]
}

it('gives back in another process what was not settled', async () => {
  await reserved(open('dead'))
  expect(await stateOf(open('dead'))).toEqual([10, 10])
  now += 60_000_000
  expect(await stateOf(open('dead'))).toEqual([0, 0])
})

it('settles a reservation once, a hundred times at once and by its id', async () => {
  const reservation = await reserved(open('again'))
  const other = open('again')
  const settled = Array.from({ length: 100 }, () => other.reservation('k', reservation.id).settle(4))
  for (const each of await Promise.all(settled)) expect(each).toEqual({ units: -6, late: false })
  expect(await stateOf(other)).toEqual([4, 0])
})

it('says of a held key when its cost passes, also by a remembered denial', async () => {
  const limiter = open('held')
  await reserved(limiter, 100)
  await limiter.hold('k', '5s')
  for (const ask of ['peek', 'consume', 'consume'] as const)
    expect(await limiter[ask]('k')).toMatchObject({
      reason: 'held',
      retryAfterMs: 60_000,
      policies: [{ held: 100 }],
    })
  now += 5_000_000
  expect(await limiter.consume('k')).toMatchObject({ reason: 'limit', retryAfterMs: 55_000 })
})

it('counts what drains between the end of a reservation and that of a hold', async () => {
  const store = redisStore(client, { clock: () => now })
  const policies = [gcra({ limit: 10, window: '100s' })]
  const limiter = createLimiter({ name: 'drains', policies, store, deadline: '10s', reservations: {} })
  limiter.on('warning', () => {})
  await limiter.consume('k', { cost: 4 })
  await limiter.reserve('k', { cost: 6, ttl: '10s' })
  await limiter.hold('k', '20s')
  expect(await limiter.peek('k', { cost: 10 })).toMatchObject({ reason: 'held', retryAfterMs: 50_000 })
})

it('extends a reservation to no earlier end', async () => {
  const limiter = open('shorter')
  await reserved(limiter, 1)
  const reservation = await reserved(limiter)
  await reservation.extend('5s')
  now += 6_000_000
  expect(await stateOf(limiter)).toEqual([11, 11])
  expect(await limiter.reservation('k', reservation.id).settle(12)).toEqual({ units: 2, late: false })
  expect(await stateOf(limiter)).toEqual([13, 1])
})

it('charges a lost state, and one that is late', async () => {
  expectWarnings(['RESERVATION_LATE'])
  const limiter = open('lost')
  const [lost, late] = [await reserved(limiter), await reserved(limiter)]
  await limiter.reset('k')
  now += 1
  await reserved(limiter, 1)
  expect(await lost.settle(4)).toEqual({ units: 4, late: true })
  now += 60_000_000
  expect(await late.settle(3)).toEqual({ units: 3, late: true })
  expect(await stateOf(limiter)).toEqual([7, 0])
})

it('is late where an older copy of its state came back', async () => {
  expectWarnings(['RESERVATION_LATE'])
  const limiter = open('older')
  await reserved(limiter, 1)
  const [key] = await client.keys('*:older:*')
  await client.copy(key!, 'older copy')
  now += 1000
  const lost = await reserved(limiter, 40)
  await client.copy('older copy', key!, 'REPLACE')
  for (let i = 0; i < 2; i++) expect(await lost.settle(35)).toEqual({ units: 35, late: true })
  expect(await limiter.reservation('k', lost.id).settle(9)).toEqual({ units: 35, late: true })
  expect(await stateOf(limiter)).toEqual([36, 1])
})

it('settles a log at more units than a call may cost, once', async () => {
  const store = redisStore(client, { clock: () => now })
  const policies = [slidingLog({ limit: 10_000, window: '1h' })]
  const limiter = createLimiter({ name: 'more', policies, store, deadline: '10s', reservations: {} })
  const reservation = (await limiter.reserve('k', { cost: 900, ttl: '1m' })).reservation!
  const again = () => limiter.reservation('k', reservation.id).settle(7500)
  for (const each of [reservation.settle(7500), again(), again()])
    expect(await each).toEqual({ units: 6600, late: false })
  expect(await stateOf(limiter)).toEqual([7500, 0])
  now += 3_600_000_000
  expect(await stateOf(limiter)).toEqual([0, 0])
})

it('finds settlings of a long list wherever they lie', async () => {
  expectWarnings(['RESERVATION_LATE'])
  const limiter = open('long', 1000)
  const all = await Promise.all(Array.from({ length: 90 }, () => reserved(limiter, 1)))
  now += 60_000_000
  for (const [i, each] of all.entries()) {
    expect(await each.settle(1)).toEqual({ units: 1, late: true })
    now += i % 2
  }
  for (const each of all)
    expect(await limiter.reservation('k', each.id).settle(1)).toEqual({ units: 1, late: true })
  expect(await stateOf(limiter)).toEqual([90, 0])
})

it('reads of a key with open reservations as much as of one that never reserved, for a plain call', async () => {
  const limiter = open('plain')
  for (let i = 0; i < 5; i++) await reserved(limiter, 1)
  const watching = await monitor(server)
  await limiter.consume('k')
  const commands = (await watching.stop()).filter((line) => / lua\].*:plain:/.test(line))
  expect(
    commands.map((line) => line.replace(/^.* lua\] /, '').replace(/"[^"]*:plain:[^"]*"/, 'key')),
  ).toEqual([
    expect.stringMatching(/^"GETRANGE" key "0" "\d+"$/i),
    expect.stringMatching(/^"SETRANGE" key /i),
  ])
})

it('is told to be settled for nothing after its end, also where its mark is there still', async () => {
  const limiter = open('marked')
  const [, settled] = [await ending(limiter, '10s'), await ending(limiter, '15s')]
  await ending(limiter, '100s')
  expect(await settled.settle(2)).toEqual({ units: -3, late: false })
  now += 12_000_000
  await limiter.consume('k')
  expect(await limiter.reservation('k', settled.id).settle(2)).toEqual({ units: -3, late: false })
  now += 8_000_000
  expect(await limiter.reservation('k', settled.id).settle(2)).toEqual({ units: 0, late: false })

  async function ending(of: Limiter, ttl: string): Promise<Reservation> {
    return (await of.reserve('k', { cost: 5, ttl })).reservation!
  }
})

it('keeps its state where the turn of a booking is confirmed after an end', async () => {
  const notices: string[] = []
  const store = redisStore(client, { clock: () => now })
  const policies = [fixedWindow({ limit: 10, window: '1h' })]
  const terms = [undefined, { max: 10 }] as const
  const keyspace = store.keyspace('confirm', policies, ({ event }) => notices.push(event), ...terms)
  const call = { key: 'k', cost: 10, id: 7, ttl: 60_000_000, atEnd: 0 }
  const { now: decidedAt } = await keyspace.reservations!.reserve(call)
  const end = decidedAt + call.ttl
  await keyspace.reservations!.change({ key: 'k', id: 7, decidedAt, end, kind: 'settle', units: 10 })
  const { at, booking } = await keyspace.decide('book', 'k', 1, 7_200_000_000)
  now = at
  expect(await keyspace.confirm(booking!)).toBe('stands')
  expect((await keyspace.decide('consume', 'k', 1, 0)).remaining).toBe(8)
  expect(notices).toEqual([])
})

it.each(['before', 'behind'])('counts a log that reserves %s another key of a call', async (place) => {
  const store = redisStore(client)
  const options = { store, deadline: '10s' } as const
  const name = `log-${place}`
  const log = [slidingLog({ limit: 100, window: '1h' })]
  const reserving = createLimiter({ ...options, name, policies: log, reservations: {} })
  const other = createLimiter({ ...options, name: `${name}-other`, policies: log })
  const parts = [reserving, other].map((limiter) => ({ limiter, key: 'k' }))
  for (let i = 1; i <= 3; i++) {
    const { decisions } = await consumeAll(place === 'before' ? parts : parts.toReversed())
    expect(decisions.map(({ remaining }) => remaining)).toEqual([100 - i, 100 - i])
  }
  await store.close()
})

it('keeps a key no longer than one that never reserved once its reservations have ended', async () => {
  const limiter = open('length')
  const length = async () => client.strlen((await client.keys('*:length:*'))[0]!)
  await limiter.consume('k')
  const before = await length()
  for (let i = 0; i < 8; i++) await (await reserved(limiter, 1)).settle(1)
  expect(await length()).toBe(before + 8 * 48)
  now += 60_000_000
  await limiter.consume('k')
  expect(await length()).toBe(before)
  await reserved(limiter, 1)
  now += 200_000_000
  await limiter.consume('k')
  expect(await length()).toBe(before)
  // One that has ended unsettled is known for a minute only beside others that were settled.
  await (await reserved(limiter, 1)).settle(1)
  await reserved(limiter, 1)
  for (const [seconds, entries] of [
    [60, 1],
    [60, 0],
  ] as const) {
    now += seconds * 1_000_000
    await limiter.consume('k')
    expect(await length()).toBe(before + entries * 48)
  }
})

it('drops marks at their end, also where each reservation is settled before the next is made', async () => {
  const limiter = open('marks', 100)
  const length = async () => client.strlen((await client.keys('*:marks:*'))[0]!)
  await limiter.consume('k')
  const before = await length()
  // Of a minute 30, which go together once a minute.
  for (let i = 0; i < 90; i++, now += 2_000_000) {
    await (await reserved(limiter, 1)).settle(1)
    expect(await length()).toBeLessThanOrEqual(before + 2 * 30 * 48)
  }
})

it("drops marks at their end by Redis's clock, on the short way", async () => {
  expectWarnings([], { perhaps: ['RESERVATION_LATE'] }) // where a settling takes longer than 20 ms
  const store = redisStore(client)
  const policies = [fixedWindow({ limit: 1_000_000, window: '365d' })]
  const limiter = createLimiter({ name: 'short', policies, store, deadline: '10s', reservations: {} })
  await limiter.consume('k')
  const [key] = await client.keys('*:short:*')
  const before = await client.strlen(key!)
  let count = 0
  for (const start = performance.now(); performance.now() < start + 100; count++)
    await (await limiter.reserve('k', { ttl: 20 })).reservation!.settle(1)
  expect(await client.strlen(key!)).toBeLessThan(before + count * 48)
  await store.close()
})

it('denies one more than may be open, and says when one ends', async () => {
  const limiter = open('full', 2)
  await reserved(limiter)
  await reserved(limiter)
  const denied = await limiter.reserve('k', { cost: 1, ttl: '1m' })
  expect(denied).toMatchObject({ allowed: false, reason: 'reservations', retryAfterMs: 60_000 })
})

it('reserves here in an outage, and settles it here', async () => {
  expectWarnings(['STORE_DEGRADED'])
  const server = await startRedis()
  const { host, port } = server
  const store = redisStore({ host, port })
  const limiter = createLimiter({ name: 'outage', policies: YEAR, store, reservations: {} })
  limiter.on('degraded', () => {})
  await limiter.consume('k')
  await server.stop()
  const decision = await limiter.reserve('k', { cost: 10, ttl: '1m' })
  expect(decision).toMatchObject({ allowed: true, charged: true })
  expect(decision.degraded).toBeDefined()
  expect(await decision.reservation!.settle(4)).toEqual({ units: -6, late: false })
  await limiter.close()
  await store.close()
})

it('gives back before a call on several keys, and says when that passes', async () => {
  const store = redisStore(client, { clock: () => now })
  const options = { policies: YEAR, store, deadline: '10s', reservations: {} } as const
  const [one, other] = [
    createLimiter({ name: 'one', ...options }),
    createLimiter({ name: 'other', ...options }),
  ]
  await reserved(one, 95)
  const parts = [
    { limiter: one, key: 'k', cost: 10 },
    { limiter: other, key: 'k', cost: 10 },
  ]
  expect(await consumeAll(parts)).toMatchObject({ allowed: false, retryAfterMs: 60_000 })
  now += 60_000_000
  expect((await consumeAll(parts)).allowed).toBe(true)
  expect([await stateOf(one), await stateOf(other)]).toEqual([
    [10, 0],
    [10, 0],
  ])
  const whole = await reserveAll(parts.map((part) => ({ ...part, ttl: '1m' })))
  expect([await stateOf(one), await stateOf(other)]).toEqual([
    [20, 10],
    [20, 10],
  ])
  expect(await whole.settle([3, 4])).toEqual([-7, -6])
})

it.each([
  ['a log', [slidingLog({ limit: 100, window: '1d' })]],
  ['buckets', [slidingWindow({ limit: 100, window: '1d' })]],
  ['slots of a debt', [gcra({ limit: 100, window: '1d', slots: 4 })]],
  ['cells alone', YEAR],
])('a peek writes nothing where reservations are open or have ended: %s', async (name, policies) => {
  const store = redisStore(client, { clock: () => now, denialCache: false })
  const limiter = createLimiter({ name, policies, store, deadline: '10s', reservations: { max: 3 } })
  const reserve = (ttl: number) => limiter.reserve('k', { cost: 10, ttl })
  for (const ttl of [60_000, 30_000, 10_000]) await reserve(ttl)
  const dumped = async () => {
    const [key] = await client.keys(`*:${name}:*`)
    return [(await client.dumpBuffer(key!)).toString('hex'), await client.call('PEXPIRETIME', key!)]
  }
  const before = await dumped()
  expect([await stateOf(limiter), await stateOf(limiter)]).toEqual([
    [30, 30],
    [30, 30],
  ])
  now += 40_000_000
  // Those that have ended, and one that is open; and a denied call sees what a peek has seen.
  expect(await stateOf(limiter)).toEqual([10, 10])
  expect((await limiter.peek('k', { cost: 95 })).policies[0]).toMatchObject({ used: 10, held: 10 })
  expect(await dumped()).toEqual(before)
  expect((await limiter.consume('k', { cost: 91 })).allowed).toBe(false)
  expect((await limiter.consume('k', { cost: 90 })).allowed).toBe(true)
})

it('a peek among calls that travel together writes nothing, and leaves their writes to them', async () => {
  const store = redisStore(client, { clock: () => now, denialCache: false })
  const policies = [slidingLog({ limit: 100, window: '1d' })]
  const limiter = createLimiter({
    name: 'beside',
    policies,
    store,
    deadline: '10s',
    reservations: { max: 3 },
  })
  for (const key of ['k', 'l', 'm']) await limiter.reserve(key, { cost: 10, ttl: '1m' })
  now += 61_000_000
  const used = await Promise.all(
    ['k', 'l', 'm'].flatMap((key) => [
      limiter.peek(key),
      limiter.consume(key, { cost: 7 }),
      limiter.reset('n'),
    ]),
  )
  expect(used).toHaveLength(9)
  for (const key of ['k', 'l', 'm']) expect((await limiter.peek(key)).policies[0]!.used).toBe(7)
})

it('a peek under a lower limit keeps the key no longer', async () => {
  const store = redisStore(client, { clock: () => now, denialCache: false })
  const at = (limit: number) =>
    createLimiter({
      name: 'lower',
      policies: [gcra({ limit, window: '1d', burst: 100 })],
      store,
      deadline: '10s',
    })
  await at(100).consume('k', { cost: 50 })
  const [key] = await client.keys('*:lower:*')
  const ends = () => client.call('PEXPIRETIME', key!)
  const before = await ends()
  await at(1).peek('k')
  expect(await ends()).toBe(before)
  await at(1).consume('k')
  expect(await ends()).not.toBe(before)
})

describe('a settling without an answer', () => {
  beforeEach(() => expectWarnings(['STORE_DEGRADED'], { perhaps: ['STORE_RECOVERED'] }))

  /** Settles while Redis holds back what it does. */
  async function settleUnheard(reservation: Reservation): Promise<void> {
    server.pause()
    await expect(reservation.settle(4)).rejects.toMatchObject({ code: 'STORE_TIMEOUT', sent: true })
    server.resume()
    await client.ping()
  }

  it('is asked about until the end of the reservation, also where the clock of the process is a day ahead', async () => {
    const { now: wall } = Date
    const ahead = jest.spyOn(Date, 'now').mockImplementation(() => wall() + 86_400_000)
    const store = redisStore(client)
    const limiter = createLimiter({ name: 'ahead', policies: YEAR, store, reservations: {} })
    const reservation = await reserved(limiter)
    ahead.mockRestore()
    await settleUnheard(reservation)
    expect(await reservation.settle(4)).toEqual({ units: -6, late: false })
    expect(limiter.held).toBe(0)
    await store.close()
  })

  it.each([
    ['before', 0, { units: 0, late: false }],
    ['after', 60_000_000, { units: 4, late: true }],
  ])('that was carried out %s that end acts once, and is not sent again later', async (_, us, settled) => {
    const store = redisStore(client, { clock: () => now })
    const limiter = createLimiter({ name: `over ${us}`, policies: YEAR, store, reservations: {} })
    limiter.on('warning', () => {})
    const reservation = await reserved(limiter)
    now += us
    for (let i = 0; i < 3; i++) await settleUnheard(reservation)
    now += 88_000_000 - us
    expect(await stateOf(limiter)).toEqual([4, 0])
    expect(await limiter.reservation('k', reservation.id).settle(4)).toEqual(settled)
    now += 3_000_000
    await expect(reservation.settle(4)).rejects.toMatchObject({ code: 'STORE_TIMEOUT' })
    expect(await stateOf(limiter)).toEqual([4, 0])
    await store.close()
  })
})
