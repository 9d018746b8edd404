import '@sluice/calendar'
import { changesAgainst, readPolicies, smellsOf } from '@sluice/policies'

type Entry = Record<string, unknown>

const fileOf = (limiters: Record<string, Entry[]>) => {
  const entries = Object.entries(limiters).map(([name, policies]) => [name, { policies }])
  return readPolicies(JSON.stringify({ limiters: Object.fromEntries(entries) }))
}

const smells = (...policies: Entry[]): string[] =>
  smellsOf(fileOf({ api: policies })).map(({ code, path }) => `${code} ${path.replace('limiters.api.', '')}`)

const log = { algorithm: 'slidingLog', limit: 100, window: '1m' }
const gcra = { algorithm: 'gcra', limit: 100, window: '1m' }

describe('what smells', () => {
  it('is nothing in a usual file', () => {
    expect(smells(log, { ...log, limit: 1000, window: '1h' })).toEqual([])
    expect(smells({ ...gcra, burst: 20 }, { ...gcra, limit: 1000, window: '1h' })).toEqual([])
  })

  it.each([
    { ...log, algorithm: 'fixedWindow' },
    { ...log, algorithm: 'tokenBucket', refill: 'interval' },
  ])('is the boundary of windows under which twice the limit may pass at once: %j', (policy) => {
    expect(smells(policy)).toEqual(['WINDOW_BOUNDARY policies[0]'])
  })

  it('is no window of the calendar, for which there is no other algorithm', () => {
    expect(
      smells({ algorithm: 'calendarWindow', limit: 100, every: 'month', timeZone: 'Asia/Tokyo' }),
    ).toEqual([])
  })

  it('is a burst of one, unless the limit is one', () => {
    expect(smells({ ...gcra, burst: 1 })).toEqual(['BURST_ONE policies[0]'])
    expect(smells({ ...gcra, limit: 1 })).toEqual([])
  })

  it.each([
    ['a longer window that cannot fill', [log, { ...log, limit: 6000, window: '1h' }], 1],
    ['a larger limit of the same window', [log, { ...log, limit: 200, name: 'large' }], 1],
    ['an equal policy', [log, { ...log, name: 'again' }], 1],
    [
      'a log that a bucket keeps empty',
      [
        { ...gcra, burst: 10 },
        { ...log, limit: 111, name: 'log' },
      ],
      1,
    ],
    [
      'a bucket beside a stricter log',
      [
        { ...gcra, limit: 1000 },
        { ...log, limit: 5, window: '1m' },
      ],
      0,
    ],
  ])('is %s, which never denies', (_, policies, index) => {
    expect(smells(...policies)).toEqual([`VOID_POLICY policies[${index}]`])
  })
})

describe('against the current file', () => {
  const changes = (after: Entry[], before: Entry[]) =>
    changesAgainst(fileOf({ api: after }), fileOf({ api: before })).map(
      ({ code, message }) => `${code}: ${message}`,
    )

  it('nothing is lost where limits rise', () => {
    expect(changes([{ ...log, limit: 200 }], [log])).toEqual([])
  })

  it('a limit and a capacity that fall are reported', () => {
    expect(changes([{ ...log, limit: 50 }], [log])).toEqual([
      "FALLEN_LIMIT: the limit of '50-per-1m' falls from 100 to 50",
    ])
    expect(changes([{ ...gcra, burst: 5 }], [{ ...gcra, burst: 9 }])).toEqual([
      "FALLEN_LIMIT: the capacity of '100-per-1m' falls from 9 to 5",
    ])
  })

  it('a shape that is gone loses what was consumed', () => {
    expect(changes([gcra], [log])).toEqual([expect.stringContaining('LOST_SHAPE')])
  })

  it('a limiter that is gone is reported', () => {
    const [lost] = changesAgainst(fileOf({ other: [log] }), fileOf({ api: [log] }))
    expect(lost).toMatchObject({ code: 'LOST_LIMITER', path: 'limiters.api' })
  })

  it.each(['a]', 'a[0]', 'a.b', ']', '[', '"'])(
    'a limiter of any name is reported at its line: %s',
    (name) => {
      const [lost] = changesAgainst(fileOf({ api: [log] }), fileOf({ [name]: [log] }))
      expect(lost).toMatchObject({ code: 'LOST_LIMITER', path: `limiters[${JSON.stringify(name)}]`, line: 1 })
      expect(smellsOf(fileOf({ [name]: [{ ...log, algorithm: 'fixedWindow' }] }))).toHaveLength(1)
    },
  )

  it('a limiter with an error is not gone', () => {
    expect(changes([{ ...log, limit: -1 }], [log])).toEqual([])
    expect(changesAgainst(readPolicies('no JSON'), fileOf({ api: [log] }))).toEqual([])
  })
})
