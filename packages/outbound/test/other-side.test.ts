import fc from 'fast-check'
import { pauseMsOf } from '../src/other-side/pause.js'

const NOW = Date.UTC(2026, 0, 1, 12)

beforeEach(() => void jest.useFakeTimers({ now: NOW }))
afterEach(() => void jest.useRealTimers())

const seconds = (offset: number) => String(NOW / 1000 + offset)

function pause(status: number, headers: Record<string, string>): number | undefined {
  return pauseMsOf({ status, header: (name) => headers[name] })
}

describe('Retry-After', () => {
  it.each([
    ['2', 2000],
    ['0.5', 500],
    [' 7 ', 7000],
    ['Thu, 01 Jan 2026 12:00:30 GMT', 30_000],
    ['Thursday, 01-Jan-26 12:00:30 GMT', 30_000],
    ['Thu Jan  1 12:00:30 2026', 30_000],
    ['999999999', 999_999_999_000],
    [seconds(4), 4000],
    [String(NOW + 4000), 4000],
    ['2026-01-01T12:00:30Z', 30_000],
    ['1m30s', 90_000],
    ['4, 4', 4000],
    ['4,9', 9000],
    ['4, soon', 4000],
    ['Thu, 01 Jan 2026 12:00:30 GMT, 5', 30_000],
    ['Saturday, 03-Jan-26 12:00:00 GMT , Thu, 01 Jan 2026 12:00:30 GMT', 48 * 3_600_000],
  ])('of %j asks for %d ms after a refusal', (value, ms) => {
    expect(pause(429, { 'retry-after': value })).toBe(ms)
    for (const status of [403, 503, 529]) expect(pause(status, { 'retry-after': value })).toBe(ms)
  })

  it.each(['0', '0, 0', seconds(-4), '1000000000000', 'Thu, 01 Jan 2026 11:00:00 GMT'])(
    'of %j asks for nothing',
    (value) => {
      expect(pause(429, { 'retry-after': value })).toBe(0)
    },
  )

  it.each(['-5', 'soon', '', 'NaN', 'Infinity', '1e3', '0x10', '12 s', '2026-01-01', ', ,', '١'])(
    'of %j is as good as none',
    (value) => {
      expect(pause(429, { 'retry-after': value })).toBeUndefined()
      expect(pause(503, { 'retry-after': value })).toBeUndefined()
    },
  )

  it('is ignored with another status', () => {
    expect(pause(200, { 'retry-after': '9' })).toBe(0)
    expect(pause(301, { 'retry-after': '9' })).toBe(0)
  })

  it('as a date is relative to the clock of the sender', () => {
    const headers = { date: 'Thu, 01 Jan 2026 15:00:00 GMT', 'retry-after': 'Thu, 01 Jan 2026 15:00:04 GMT' }
    expect(pause(429, headers)).toBe(4000)
  })

  it('wins over the quotas', () => {
    expect(pause(429, { 'retry-after': '1', ratelimit: '"a";r=0;t=60' })).toBe(1000)
  })
})

it.each(['retry-after-ms', 'x-ms-retry-after-ms', 'x-amz-retry-after'])(
  '%s is in milliseconds, and wins over Retry-After',
  (name) => {
    expect(pause(429, { [name]: '40', 'retry-after': '1' })).toBe(40)
    expect(pause(503, { [name]: '40, 50' })).toBe(50)
    expect(pause(429, { [name]: '0', 'retry-after': '1' })).toBe(1000)
    expect(pause(429, { [name]: '0' })).toBe(0)
    expect(pause(200, { [name]: '40' })).toBe(0)
  },
)

describe('RateLimit', () => {
  it.each([
    ['"p";a=0;w=2', 2000],
    ['"p";a=1;w=2', 0],
    ['"p";r=0;w=2', 0],
    [`"p";r=0;t=${seconds(4)}`, 4000],
    [`limit=1, remaining=0, reset=${seconds(4)}`, 4000],
    ['"default";r=0;t=30', 30_000],
    ['default;r=0;t=30', 30_000],
    ['"a";r=0;t=5, "b";r=0;t=60, "c";r=9;t=900', 60_000],
    ['"a, b;r=0;t=9";r=1;t=3', 0],
    ['"a \\" b";r=0;t=3', 3000],
    ['"a";t=3;r=0;pk=:dXNlcg==:', 3000],
    ['"a";r=3;t=3', 0],
    ['"a";r=0', 0],
    ['"a";r=-1;t=3', 0],
    ['"a";r=0;t=-3', 0],
    ['"a";r=0;t=1.5', 0],
    ['"a";r=0;t=99999999999999999999', 0],
    ['limit=1, remaining=0, reset=9', 9000],
    ['limit=1;w=60, remaining=0, reset=9', 9000],
    ['limit=1, remaining=1, reset=9', 0],
    ['limit=1, remaining=0', 0],
    ['"', 0],
    [';;;,,,===', 0],
  ])('of %j on a success asks for %d ms', (value, ms) => {
    expect(pause(200, { ratelimit: value })).toBe(ms)
  })

  it('sets the pause of a refusal even if units are left', () => {
    expect(pause(429, { ratelimit: '"a";r=0;t=2, "b";r=5;t=60' })).toBe(2000)
    expect(pause(429, { ratelimit: '"a";r=2;t=7' })).toBe(7000)
  })
})

describe('X-RateLimit', () => {
  it.each([
    ['0', '30', 30_000],
    ['0', seconds(30), 30_000],
    ['0', String(NOW + 30_000), 30_000],
    ['0', '0.25', 250],
    ['0', '20ms', 20],
    ['0', '6m0s', 360_000],
    ['0', '2026-01-01T12:00:30+00:00', 30_000],
    ['0', 'Thu, 01 Jan 2026 12:00:30 GMT', 30_000],
    ['3, 0', '30, 40', 40_000],
    ['1', '30', 0],
    ['0', '-30', 0],
    ['0', seconds(-30), 0],
    ['0', '1e12', 0],
    ['0', '1000000000000', 0],
    ['0', 'later', 0],
    ['', '30', 0],
    ['nothing', '30', 0],
  ])('with %j left and reset %j on a success asks for %d ms', (remaining, reset, ms) => {
    const headers = { 'x-ratelimit-remaining': remaining, 'x-ratelimit-reset': reset }
    expect(pause(200, headers)).toBe(ms)
  })

  it('sets the pause of a refusal even if units are left or the number is missing', () => {
    expect(pause(429, { 'x-ratelimit-remaining': '3', 'x-ratelimit-reset': '4' })).toBe(4000)
    expect(pause(429, { 'x-ratelimit-reset': '4' })).toBe(4000)
  })
})

describe('a reply from a cache', () => {
  const usedUp = { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '60' }

  it.each(['1', '3600', '50, 2'])('of age %s that is a success says nothing', (age) => {
    for (const status of [200, 206, 304]) expect(pause(status, { ...usedUp, age })).toBe(0)
    expect(pause(200, { ratelimit: '"a";r=0;t=60', age })).toBe(0)
  })

  it.each(['0', '0.5', 'old', '-9', ''])('of age %j is new', (age) => {
    expect(pause(200, { ...usedUp, age })).toBe(60_000)
    expect(pause(429, { 'retry-after': '60', age })).toBe(60_000)
  })

  it('that is a refusal asks for what is left of its wait since it was made', () => {
    expect(pause(429, { 'retry-after': '60', age: '50' })).toBe(10_000)
    expect(pause(429, { 'retry-after': '60', age: '70' })).toBe(0)
    expect(pause(429, { 'retry-after': seconds(10), age: '50' })).toBe(10_000)
    expect(pause(429, { ...usedUp, age: '50' })).toBe(10_000)
    expect(pause(403, { ...usedUp, 'retry-after': '60', age: '50' })).toBe(10_000)
    const made = { date: new Date(NOW + 7_200_000).toUTCString(), age: '50' } // by a clock that is ahead
    expect(pause(429, { ...made, 'retry-after': new Date(NOW + 7_260_000).toUTCString() })).toBe(10_000)
  })
})

/** Texts of a wait of so many seconds from now, in each form. */
const FORMS: Record<string, (waitS: number) => string> = {
  seconds: String,
  'seconds since 1970': seconds,
  'milliseconds since 1970': (waitS) => String(NOW + waitS * 1000),
  'a duration': (waitS) => `${Math.floor(waitS / 60)}m${waitS % 60}s`,
  'milliseconds with a unit': (waitS) => `${waitS * 1000}ms`,
  'a date of HTTP': (waitS) => new Date(NOW + waitS * 1000).toUTCString(),
  'a date of RFC 3339': (waitS) => new Date(NOW + waitS * 1000).toISOString(),
}
const IN_MS = new Set(['retry-after-ms', 'x-ms-retry-after-ms', 'x-amz-retry-after'])
const RESETS = ['x-ratelimit-reset', 'x-rate-limit-reset', 'ratelimit-reset', 'x-ratelimit-reset-requests']

it('a time means the same in every header, form and list, from a cache or not', () => {
  const form = fc.constantFrom(...Object.keys(FORMS))
  const name = fc.constantFrom('retry-after', ...IN_MS, ...RESETS)
  const waitS = fc.integer({ min: 1, max: 100_000 })
  const second = fc.option(fc.tuple(form, waitS), { nil: undefined })
  fc.assert(
    fc.property(name, form, waitS, second, fc.nat(200), (header, how, wait, other, age) => {
      const [otherHow = '', otherWait = 0] = other ?? []
      fc.pre(!IN_MS.has(header) || (how !== 'seconds' && otherHow !== 'seconds'))
      const texts = [FORMS[how]!(wait), ...(other ? [FORMS[otherHow]!(otherWait)] : [])]
      fc.pre(texts.join(', ').length <= 64)
      const headers = { [header]: texts.join(', '), age: String(age), date: new Date(NOW).toUTCString() }
      const expected = Math.max(0, 1000 * (Math.max(wait, otherWait) - age))
      expect(pause(429, headers) ?? 0).toBeCloseTo(expected, 3)
    }),
  )
})

describe('without any header', () => {
  it('a 429, 503 or 529 asks for a pause of unknown length, and no other status asks for one', () => {
    for (const status of [429, 503, 529]) expect(pause(status, {})).toBeUndefined()
    expect([200, 403, 404, 500, 502].map((status) => pause(status, {}))).toEqual([0, 0, 0, 0, 0])
  })
})

describe('a reply that lists the names of its headers', () => {
  const told: Record<string, string> = {
    'Content-Type': 'text/plain',
    'X-RateLimit-Reset': '30',
    'x-ratelimit-remaining': '0',
    'x-ratelimit-reset-tokens': '20',
  }

  it('is asked for those alone that say something, whatever the case of their names', () => {
    const asked: string[] = []
    const header = (name: string) => {
      asked.push(name)
      return Object.entries(told).find(([known]) => known.toLowerCase() === name)?.[1]
    }
    const names = () => Object.keys(told)
    expect(pauseMsOf({ status: 200, header, names })).toBe(30_000)
    expect(asked.filter((name) => name !== 'date' && name !== 'age').toSorted()).toEqual([
      'x-ratelimit-remaining',
      'x-ratelimit-remaining-tokens',
      'x-ratelimit-reset',
      'x-ratelimit-reset-tokens',
    ])
    expect(pauseMsOf({ status: 200, header, names: () => undefined })).toBe(30_000)
  })
})
