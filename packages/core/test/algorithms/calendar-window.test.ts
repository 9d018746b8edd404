import '@sluice/calendar'
import { expectWarnings } from '@sluice/harness/warnings'
import {
  calendarWindow,
  createLimiter,
  gcra,
  memoryStore,
  type Policy,
  PolicyError,
} from '../../src/index.js'
import { play, type Row } from './timeline.js'

const HOUR = 3_600_000
const DAY = 24 * HOUR
const [JANUARY, FEBRUARY, MARCH] = [31 * DAY, 28 * DAY, 31 * DAY]

/** A limiter in memory on a clock of its own, in milliseconds. */
function limiterAt(start: string | number) {
  const time = { ms: typeof start === 'number' ? start : Date.parse(start) }
  const store = memoryStore({ clock: () => time.ms * 1000 })
  const limiter = createLimiter({ name: 'test', policies: [month()], store })
  const allowed = async (policy: Policy, calls: number): Promise<number> => {
    let passed = 0
    for (let i = 0; i < calls; i++) if ((await limiter.consume('a', { policies: [policy] })).allowed) passed++
    return passed
  }
  return { time, limiter, allowed }
}

const month = (timeZone = 'UTC', anchor?: string, limit = 10) =>
  calendarWindow({ limit, every: 'month', timeZone, ...(anchor !== undefined && { anchor }) })

describe('calendar window', () => {
  beforeEach(() => expectWarnings([], { perhaps: ['STORE_FORGETS'] }))

  it('begins anew with each period of the calendar', () => {
    const table: Row[] = [
      // ms, cost, allowed, remaining, retryAfterMs, resetAfterMs
      [0, 1, true, 1, 0, JANUARY],
      [0, 2, false, 1, JANUARY, JANUARY],
      [JANUARY - 1, 1, true, 0, 0, 1],
      [JANUARY - 1, 1, false, 0, 1, 1],
      [JANUARY, 2, true, 0, 0, FEBRUARY],
      [JANUARY + FEBRUARY, 1, true, 1, 0, MARCH],
      [JANUARY + FEBRUARY, 3, false, 1, Infinity, MARCH],
      [10 * 365 * DAY, 0, true, 2, 0, 0],
    ]
    expect(play([month('UTC', undefined, 2)], table)).toEqual(table)
  })

  it('counts months from the anchor and never from the window before', () => {
    const table: Row[] = [
      [0, 1, true, 0, 0, 30 * DAY],
      [30 * DAY, 1, true, 0, 0, FEBRUARY], // 31 January to 28 February
      [58 * DAY, 1, true, 0, 0, 31 * DAY], // to 31 March
      [89 * DAY, 1, true, 0, 0, 30 * DAY], // to 30 April
    ]
    expect(play([month('UTC', '2025-01-31', 1)], table)).toEqual(table)
  })

  it('has days of 23 and 25 hours, and is a rule beside others', async () => {
    const { time, limiter } = limiterAt('2025-03-29T23:00Z')
    const policies = [
      calendarWindow({ limit: 1, every: 'day', timeZone: 'Europe/Berlin' }),
      gcra({ limit: 9, window: '1s' }),
    ]
    expect((await limiter.consume('a', { policies })).resetAfterMs).toBe(23 * HOUR)
    expect((await limiter.consume('a', { policies })).retryAfterMs).toBe(23 * HOUR)
    time.ms = Date.parse('2025-10-25T22:00Z')
    expect((await limiter.consume('a', { policies })).resetAfterMs).toBe(25 * HOUR)
  })

  it('stays in its window until that ends, whatever zone or anchor calls bring', async () => {
    const { time, allowed } = limiterAt('2025-03-15T00:00Z')
    const zones = ['UTC', 'Pacific/Kiritimati', 'America/Los_Angeles', 'Asia/Kathmandu']
    let passed = 0
    for (let i = 0; i < 10_000; i++) {
      const day = String(1 + (i % 31)).padStart(2, '0')
      passed += await allowed(month(zones[i % 4], `2025-01-${day}`), 1)
    }
    expect(passed).toBe(10)
    // The first call's window ends on 1 April: until then nothing more passes, also if an anchor lies before.
    time.ms = Date.parse('2025-03-31T23:59:59.999Z')
    expect(await allowed(month('UTC', '2025-01-20'), 5)).toBe(0)
    time.ms += 1
    expect(await allowed(month('UTC', '2025-01-20'), 20)).toBe(10)
    // From 1 April to 20 April is more than half a shortest month.
    time.ms = Date.parse('2025-04-19T23:59Z')
    expect(await allowed(month('UTC', '2025-01-20'), 20)).toBe(0)
    time.ms = Date.parse('2025-04-20T00:00Z')
    expect(await allowed(month('UTC', '2025-01-05'), 20)).toBe(10)
    // And from 20 April to 5 May is, too; from 5 May to 12 May is not: that window lasts until 12 June.
    time.ms = Date.parse('2025-05-05T00:00Z')
    expect(await allowed(month('UTC', '2025-01-12'), 20)).toBe(10)
    time.ms = Date.parse('2025-06-11T23:59Z')
    expect(await allowed(month('UTC', '2025-01-12'), 20)).toBe(0)
    time.ms = Date.parse('2025-06-12T00:00Z')
    expect(await allowed(month('UTC', '2025-01-12'), 20)).toBe(10)
  })

  it('begins the window that the call brings after a reset', async () => {
    const { limiter, allowed } = limiterAt('2025-03-15T00:00Z')
    expect(await allowed(month('UTC', '2025-01-20'), 11)).toBe(10)
    await limiter.reset('a')
    const decision = await limiter.consume('a', { policies: [month()] })
    expect(decision.resetAfterMs).toBe(17 * DAY)
  })

  it('gives units of its own window back, and none of one that has ended', async () => {
    const { time, limiter } = limiterAt('2025-03-31T23:00Z')
    const decisions = [await limiter.consume('a', { cost: 6 }), await limiter.consume('a', { cost: 4 })]
    await decisions[0]!.settle(1)
    expect((await limiter.peek('a')).remaining).toBe(5)
    time.ms += HOUR
    expect(await decisions[1]!.settle(1)).toBe(0)
    expect((await limiter.peek('a')).remaining).toBe(10)
  })

  it('knows states that no call has left', () => {
    const policy = month()
    const period = policy.window
    const at = Date.UTC(2026, 5, 15) * 1000
    const isValid = (start: number, ends: number) => {
      const cells = [start, ends, 1]
      const state = { get: (cell: number) => cells[cell]! } as never
      return policy.algorithm.isValid?.(state, policy, at, at + 4 * period)
    }
    expect([isValid(0, 0), isValid(at, at + period), isValid(at - 3 * period, at)]).toEqual([
      true,
      true,
      true,
    ])
    // Of fifty years, of a later start than end, and of an end that no call could have brought.
    expect([isValid(1, at), isValid(at + 1, at), isValid(at + period, at + 3 * period + 1)]).toEqual([
      false,
      false,
      false,
    ])
  })

  it('takes limits up to 2^52', async () => {
    const { limiter } = limiterAt(0)
    const policies = [calendarWindow({ limit: 2 ** 52, every: 'year' })]
    await limiter.charge('a', { cost: 2 ** 31, policies })
    expect((await limiter.peek('a', { policies })).remaining).toBe(2 ** 52 - 2 ** 31)
  })

  it('has one shape for each period, and names itself by it', () => {
    const policies = [month(), month('Asia/Tokyo', '2020-02-29T12:30')]
    expect(policies.map(({ shape, name }) => [shape, name])).toEqual(
      Array(2).fill(['calendar-window/month', '10-per-month']),
    )
    expect(month().with({ limit: 7 }).calendar).toBe(month().calendar)
  })

  it.each([
    [{ every: 'month', timeZone: 'Mars/Olympus' }, /time zone that exist, got .* in 'Mars\/Olympus'/],
    [{ every: 'month', anchor: '2025-02-30' }, /an anchor and a time zone that exist, got '2025-02-30'/],
    [{ every: 'month', anchor: 'tomorrow' }, /anchor must be a local date/],
    [{ every: 'hour' }, /every must be 'day', 'week', 'month', 'quarter' or 'year', got "hour"/],
    [{ every: 'day', window: '1d' }, /there is no option 'window' of calendarWindow/],
    [{}, /every must be/],
  ])('refuses %j', (options, message) => {
    const make = () => calendarWindow({ limit: 1, ...options } as never)
    expect(make).toThrow(PolicyError)
    expect(make).toThrow(message)
  })

  it('refuses a window in other numbers', () => {
    expect(() => month().with({ window: '1d' })).toThrow(/no option window/)
  })
})
