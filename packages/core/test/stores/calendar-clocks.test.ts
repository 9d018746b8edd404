import '@sluice/calendar'
import {
  calendarWindow,
  consumeAll,
  createLimiter,
  gcra,
  type LimiterOptions,
  type Policy,
  type Reservation,
  slidingLog,
} from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { keyspaceOver, type Store, type Update } from '@sluice/core/store'
import { oneRedis, withoutRecords } from './redis/one-redis.js'

/*
 * Windows of the calendar by clocks that are wrong: that of the store, which decides, and those of processes, which only choose the
 * boundaries that they bring.
 */

const { client } = oneRedis()
const HOUR = 3_600_000_000
const DAY = 24 * HOUR
const EVERY = ['day', 'week', 'month', 'quarter', 'year'] as const
/** 15 June 2026 at noon. */
const NOON = Date.UTC(2026, 5, 15, 12) * 1000

/** A store that keeps bytes in a map, on this clock. */
function bytesStore(now: () => number): Store {
  const states = new Map<string, Uint8Array>()
  const update: Update = (id, change) => {
    const { result, state } = change(states.get(id), now())
    if (state) states.set(id, state)
    else states.delete(id)
    return result
  }
  return {
    local: true,
    keyspace: (...limiter) => keyspaceOver(update, ...limiter),
    now,
    close() {},
  }
}

let names = 0

describe.each([
  ['Redis', (clock: () => number) => withoutRecords(redisStore(client, { clock, denialCache: false }))],
  ['bytes', bytesStore],
])('a store in %s whose clock was set', (_, storeOf) => {
  /** A limiter in such a store on a clock of its own, and how many of `calls` pass. */
  function limiterUnder(
    policies: Policy[],
    options: Pick<LimiterOptions, 'penalty' | 'tiers' | 'reservations'> = {},
  ) {
    const time = { now: NOON }
    const store = storeOf(() => time.now)
    const limiter = createLimiter({
      name: `clocks-${++names}`,
      policies,
      store,
      onStoreError: 'throw',
      deadline: '30s',
      ...options,
    } as never)
    const passed = async (calls: number, own = policies): Promise<number> => {
      let count = 0
      for (let i = 0; i < calls; i++) if ((await limiter.consume('a', { policies: own })).allowed) count++
      return count
    }
    return { time, limiter, passed }
  }

  it('ends a window that was booked for later at a boundary of its calendar, however far that is', async () => {
    // The year of the first call ends on 1 January 2027. The next one has another anchor, which comes 68 days later: too soon.
    const store = storeOf(() => Date.UTC(2026, 1, 1) * 1000)
    const [first, other] = ['2024-01-01', '2024-03-10'].map((anchor) =>
      store.keyspace('anchors', [calendarWindow({ limit: 1, every: 'year', anchor })], () => {}),
    )
    await first!.decide('consume', 'a', 1, 0)
    const { at, resetAt } = await other!.decide('book', 'a', 1, 2 ** 50)
    expect([at, resetAt]).toEqual([Date.UTC(2027, 0, 1) * 1000, Date.UTC(2028, 2, 10) * 1000])
  })

  it.each(EVERY)(
    'a day back admits no more in a window of a %s, and makes no time stand still',
    async (every) => {
      const { time, limiter, passed } = limiterUnder([calendarWindow({ limit: 5, every })])
      expect(await passed(3)).toBe(3)
      const ends = time.now / 1000 + (await limiter.peek('a')).resetAfterMs
      time.now -= DAY
      expect(await passed(1)).toBe(1)
      expect((await limiter.peek('a')).resetAfterMs).toBe(ends - time.now / 1000)
      expect(await passed(3)).toBe(1)
      time.now = ends * 1000 - 1000
      expect(await passed(1)).toBe(0)
      time.now += 1000
      expect(await passed(6)).toBe(5)
    },
  )

  it.each(EVERY)('admits the limit once through 1,000 changes of zone and anchor in a %s', async (every) => {
    const { limiter } = limiterUnder([calendarWindow({ limit: 7, every })])
    const zones = Intl.supportedValuesOf('timeZone')
    const calls = Array.from({ length: 1000 }, (_, i) => {
      const anchor = `2024-${String(1 + (i % 12)).padStart(2, '0')}-${String(1 + (i % 28)).padStart(2, '0')}`
      const policies = [calendarWindow({ limit: 7, every, timeZone: zones[i % zones.length]!, anchor })]
      return limiter.consume('a', { policies })
    })
    expect((await Promise.all(calls)).filter(({ allowed }) => allowed)).toHaveLength(7)
  })

  it.each(EVERY)('a day ahead and back again ends a window of a %s once', async (every) => {
    const { time, limiter, passed } = limiterUnder([calendarWindow({ limit: 5, every })])
    expect(await passed(6)).toBe(5)
    time.now += DAY
    const later = await passed(6)
    const ends = time.now / 1000 + (await limiter.peek('a')).resetAfterMs
    time.now -= DAY
    // The later window has begun, so what is left of it is all until it ends.
    expect([later, await passed(6)]).toEqual([every === 'day' || later > 0 ? 5 : 0, 0])
    time.now = ends * 1000
    expect(await passed(6)).toBe(5)
  })

  it.each(EVERY)(
    'years ahead for a while locks no key of a %s for longer than two of its windows',
    async (every) => {
      const { time, passed } = limiterUnder([calendarWindow({ limit: 5, every })])
      time.now += 4000 * DAY
      expect(await passed(6)).toBe(5)
      time.now -= 4000 * DAY
      expect(await passed(6)).toBe(5)
    },
  )

  it('years ahead for a while locks no key of a calendar beside another policy', async () => {
    const policies = [gcra({ limit: 9, window: '1m' }), calendarWindow({ limit: 5, every: 'day' })]
    const { time, passed } = limiterUnder(policies)
    time.now += 4000 * DAY
    expect(await passed(6)).toBe(5)
    time.now -= 4000 * DAY
    expect(await passed(6)).toBe(5)
  })

  it.each(['consume', 'acquire'] as const)(
    'forgets nothing of a window by refusals that are counted after the clock was set back: %s',
    async (call) => {
      const penalty = { after: 2, block: '1m', forgetAfter: '1h' } as const
      const { time, limiter } = limiterUnder([calendarWindow({ limit: 5, every: 'year' })], { penalty })
      const options = { cost: 4, ...(call === 'acquire' && { maxWait: 0 }) }
      await limiter[call]('a', options)
      time.now -= DAY
      await limiter[call]('a', { ...options, cost: 1 })
      const reasons: (string | undefined)[] = []
      for (let i = 0; i < 3; i++) {
        time.now += 1000
        reasons.push((await limiter[call]('a', options)).reason)
      }
      expect(reasons).toEqual(['limit', 'limit', 'blocked'])
    },
  )

  it('gives units of a charge back after the clock was set back', async () => {
    const { time, limiter, passed } = limiterUnder([calendarWindow({ limit: 5, every: 'year' })])
    const decision = await limiter.consume('a', { cost: 4 })
    time.now -= DAY
    expect(await passed(1)).toBe(1)
    expect(await decision.settle(1)).toBe(-3)
    expect((await limiter.peek('a')).remaining).toBe(3)
  })

  it.each([0, 1])(
    'settles and ends reservations of before and after, %i h after the key began',
    async (hours) => {
      const month = [calendarWindow({ limit: 100, every: 'month' })]
      const { time, limiter, passed } = limiterUnder(month, { reservations: {} })
      if (hours > 0) await passed(1)
      time.now += hours * 3_600_000_000
      const reserve = async (cost: number) => (await limiter.reserve('a', { cost, ttl: '10m' })).reservation!
      const before = await Promise.all(Array.from({ length: 30 }, () => reserve(1)))
      time.now -= 1_000_000
      const after = await Promise.all(Array.from({ length: 30 }, () => reserve(1)))
      for (const each of [after[9]!, before[9]!])
        expect(await each.settle(3)).toEqual({ units: 2, late: false })
      const standing = async () => {
        const { used, held } = (await limiter.peek('a')).policies[0]!
        return [used - hours, held]
      }
      expect(await standing()).toEqual([64, 58])
      time.now += 601_000_000
      expect(await standing()).toEqual([6, 0])
    },
  )

  it('gives units back of a charge that was made after that', async () => {
    const { time, limiter, passed } = limiterUnder([calendarWindow({ limit: 9, every: 'year' })])
    expect(await passed(4)).toBe(4)
    time.now -= DAY
    const later = await limiter.consume('a', { cost: 5 })
    expect(await later.settle(1)).toBe(-4)
    expect((await limiter.peek('a')).remaining).toBe(4)
  })

  it('forgets nothing that a key has counted or blocked which reserves, beside a window that was forgotten', async () => {
    const policies = [calendarWindow({ limit: 1000, every: 'year' }), gcra({ limit: 1000, window: '1s' })]
    const { time, limiter, passed } = limiterUnder(policies, { reservations: {} })
    await limiter.consume('a', { cost: 900 })
    time.now += HOUR
    const settled = (await limiter.reserve('a', { cost: 10, ttl: '5m' })).reservation!
    await limiter.reserve('a', { cost: 20, ttl: '10m' })
    await settled.settle(10)
    time.now += 60_000_000
    time.now -= HOUR / 2
    expect(await passed(1)).toBe(1)
    expect((await limiter.peek('a')).policies[0]).toMatchObject({ used: 931, held: 20 })
    expect(await settled.settle(10)).toEqual({ units: 0, late: false })
    time.now += HOUR
    expect((await limiter.peek('a')).policies[0]).toMatchObject({ used: 911, held: 0 })
  })

  it('settles each of many reservations, whether they were made before or after', async () => {
    const policies = [calendarWindow({ limit: 10_000, every: 'year' })]
    const { time, limiter } = limiterUnder(policies, { reservations: {} })
    const reserve = async (count: number) => {
      for (let i = 0; i < count; i++) {
        made.push((await limiter.reserve('a', { cost: 10, ttl: '2h' })).reservation!)
        time.now += 1_000_000
      }
    }
    const made: Reservation[] = []
    await reserve(1)
    time.now += 600_000_000
    await reserve(24)
    time.now -= 60_000_000
    await reserve(46)
    for (const [i, each] of made.entries()) {
      await each.extend('3h')
      expect(await each.settle(i)).toEqual({ units: i - 10, late: false })
    }
    const units = (71 * 70) / 2
    expect((await limiter.peek('a')).policies[0]).toMatchObject({ used: units, held: 0 })
    time.now += 4 * HOUR
    expect((await limiter.peek('a')).policies[0]!.used).toBe(units)
  })

  it('gives no units of it back beside a window that was forgotten, but those of later charges', async () => {
    const { time, limiter, passed } = limiterUnder([
      calendarWindow({ limit: 9, every: 'year' }),
      gcra({ limit: 9, window: '1m' }),
    ])
    const before = await limiter.consume('a', { cost: 4 })
    time.now -= DAY
    expect(await passed(1)).toBe(1)
    expect(await before.settle(1)).toBe(0)
    expect((await limiter.peek('a')).remaining).toBe(4)
    const later = await limiter.consume('a', { cost: 4 })
    expect(await later.settle(1)).toBe(-3)
    expect((await limiter.peek('a')).remaining).toBe(3)
  })

  it('takes no block for a new one that is over where time stands still', async () => {
    const own = [gcra({ limit: 2, window: '1m' })]
    const other = [slidingLog({ limit: 9, window: '1m' })]
    const penalty = { after: 9, block: '1m', forgetAfter: '1h' } as const
    const { time, limiter, passed } = limiterUnder(own, { penalty, tiers: [other] })
    await limiter.block('a', '1s')
    time.now += 2_000_000
    expect([await passed(3), await passed(1, other)]).toEqual([2, 1])
    time.now -= 10_000_000
    expect([await passed(1), await passed(1, other)]).toEqual([0, 1])
  })

  it('gives no units back of a charge that was forgotten when the clock was set back', async () => {
    const { time, limiter, passed } = limiterUnder([gcra({ limit: 9, window: '1m' })])
    const before = await limiter.consume('a', { cost: 4 })
    time.now -= DAY
    expect(await passed(2)).toBe(2)
    expect(await before.settle(1)).toBe(0)
    expect((await limiter.peek('a')).remaining).toBe(7)
  })

  it('forgets a short window beside a calendar, and what is booked in it, but not the calendar', async () => {
    const gcraOfASecond = gcra({ limit: 2, window: '1s' })
    const year = calendarWindow({ limit: 5, every: 'year' })
    const log = slidingLog({ limit: 3, window: '1m' })
    const { time, limiter, passed } = limiterUnder([gcraOfASecond, year, log])
    expect(await passed(3)).toBe(2)
    time.now -= DAY
    expect(await passed(3)).toBe(2)
    time.now += 60_000_000
    expect(await passed(3)).toBe(1)
    expect((await limiter.peek('a')).policy).toBe(year.name)
  })
})

describe('a process whose clock is wrong', () => {
  afterEach(() => jest.restoreAllMocks())

  /** How many scripts Redis has run. */
  async function scripts(): Promise<number> {
    const stats = await client.info('commandstats')
    return [...stats.matchAll(/cmdstat_eval(?:sha)?:calls=(\d+)/g)].reduce(
      (sum, [, calls]) => sum + Number(calls),
      0,
    )
  }

  it.each(EVERY)('is asked once more where a window of a %s begins, and never within one', async (every) => {
    const policies = [calendarWindow({ limit: 5, every })]
    const store = withoutRecords(redisStore(client, { denialCache: false }))
    const limiter = createLimiter({
      name: `process-${every}`,
      policies,
      store,
      onStoreError: 'throw',
      deadline: '30s',
    })
    const right = (await limiter.consume('right')).resetAfterMs
    jest.spyOn(Date, 'now').mockReturnValue(Date.UTC(1999, 0))
    const before = await scripts()
    const { resetAfterMs } = await limiter.consume('wrong')
    expect((await scripts()) - before).toBe(2)
    expect(Math.abs(resetAfterMs - right)).toBeLessThan(30_000)
    const calls = await Promise.all(Array.from({ length: 6 }, () => limiter.consume('wrong')))
    expect(calls.filter(({ allowed }) => allowed)).toHaveLength(4)
    await limiter.consume('wrong')
    expect((await scripts()) - before).toBeLessThanOrEqual(2 + 7)
  })

  it.each([1999, 2099])('in the year %i is asked once more in a call on several keys', async (year) => {
    const store = withoutRecords(redisStore(client, { denialCache: false }))
    const [days, months] = (['day', 'month'] as const).map((every) =>
      createLimiter({
        name: `whole-${every}-${year}`,
        policies: [calendarWindow({ limit: 4, every }), gcra({ limit: 9, window: '1s' })],
        store,
        onStoreError: 'throw',
        deadline: '30s',
      }),
    )
    const whole = () => consumeAll([days!, months!].map((limiter) => ({ limiter, key: 'wrong' })))
    const right = await months!.consume('right')
    jest.spyOn(Date, 'now').mockReturnValue(Date.UTC(year, 0))
    const before = await scripts()
    await whole()
    expect((await scripts()) - before).toBe(2)
    const calls = await Promise.all(Array.from({ length: 6 }, whole))
    expect(calls.filter(({ allowed }) => allowed)).toHaveLength(3)
    expect(Math.abs((await months!.peek('wrong')).resetAfterMs - right.resetAfterMs)).toBeLessThan(30_000)
    expect((await days!.peek('wrong')).resetAfterMs).toBeLessThanOrEqual(86_400_000)
  })

  it('shares one script and one state with a thousand customers in all zones, and admits a limit to each', async () => {
    const zones = Intl.supportedValuesOf('timeZone').slice(0, 400)
    const store = withoutRecords(redisStore(client, { denialCache: false }))
    const first = [calendarWindow({ limit: 2, every: 'month' })]
    const limiter = createLimiter({
      name: 'zones',
      policies: first,
      store,
      onStoreError: 'throw',
      deadline: '30s',
    })
    const evals = async () =>
      Number(/cmdstat_eval:calls=(\d+)/.exec(await client.info('commandstats'))?.[1] ?? 0)
    await limiter.consume('first')
    const before = await evals()
    const consumed = Array.from({ length: 3000 }, async (_, i) => {
      const anchor = `2025-01-${String(1 + (i % 31)).padStart(2, '0')}`
      const policy = calendarWindow({ limit: 2, every: 'month', timeZone: zones[i % zones.length]!, anchor })
      return (await limiter.consume(`customer ${i % 1000}`, { policies: [policy] })).allowed
    })
    expect((await Promise.all(consumed)).filter(Boolean)).toHaveLength(2000)
    expect((await evals()) - before).toBe(0)
  })
})
