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
    ['1000000000000', 1e15],
  ])('of %j asks for %d ms after a refusal', (value, ms) => {
    expect(pause(429, { 'retry-after': value })).toBe(ms)
    for (const status of [403, 503, 529]) expect(pause(status, { 'retry-after': value })).toBe(ms)
  })

  it.each(['0', 'Thu, 01 Jan 2026 11:00:00 GMT'])('of %j asks for nothing', (value) => {
    expect(pause(429, { 'retry-after': value })).toBe(0)
  })

  it.each(['-5', 'soon', '', 'NaN', 'Infinity', '1e3', '0x10', '12 s', '2026-01-01T13:00:00Z', '١'])(
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

describe('RateLimit', () => {
  it.each([
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
    expect(asked.filter((name) => name !== 'date').toSorted()).toEqual([
      'x-ratelimit-remaining',
      'x-ratelimit-remaining-tokens',
      'x-ratelimit-reset',
      'x-ratelimit-reset-tokens',
    ])
    expect(pauseMsOf({ status: 200, header, names: () => undefined })).toBe(30_000)
  })
})
