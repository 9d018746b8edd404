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

  it('is no policy beside one of another calendar, which ends at other times', () => {
    const day = { algorithm: 'calendarWindow', every: 'day' }
    const beside = (one: Entry, other: Entry) =>
      smells({ ...day, ...one, limit: 100 }, { ...day, ...other, limit: 80, name: 'b' })
    expect(beside({ timeZone: 'UTC' }, { timeZone: 'Asia/Tokyo' })).toEqual([])
    expect(beside({ anchor: '2025-01-01' }, { anchor: '2025-01-01T12:00' })).toEqual([])
    expect(beside({ timeZone: 'Asia/Tokyo' }, { timeZone: 'Asia/Tokyo' })).toEqual([
      'VOID_POLICY policies[0]',
    ])
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

it('smells in the policies of a plan, too', () => {
  const plans = { pro: [log, { ...log, limit: 6000, window: '1h' }] }
  const file = readPolicies(JSON.stringify({ limiters: { api: { policies: [log], plans } } }))
  expect(smellsOf(file).map(({ code, path }) => `${code} ${path}`)).toEqual([
    'VOID_POLICY limiters.api.plans.pro[1]',
  ])
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

  it('a limit that falls for the callers of a plan is reported, whether the plan is changed, gone or new', () => {
    const withPlans = (plans: Record<string, Entry[]>) =>
      readPolicies(JSON.stringify({ limiters: { api: { policies: [log], plans } } }))
    const pro = withPlans({ pro: [{ ...log, limit: 1000 }], free: [gcra] })
    const of = (after: Record<string, Entry[]>) =>
      changesAgainst(withPlans(after), pro).map(({ message }) => message)
    const shapes = expect.stringContaining("of the plan 'free' become") as string
    expect(of({ pro: [{ ...log, limit: 10 }], free: [gcra] })).toEqual([
      "the limit of '10-per-1m' of the plan 'pro' falls from 1000 to 10",
    ])
    expect(of({})).toEqual(["the limit of '100-per-1m' of the plan 'pro' falls from 1000 to 100", shapes])
    expect(of({ pro: [{ ...log, limit: 1000 }], free: [gcra], trial: [{ ...log, limit: 5 }] })).toEqual([
      "the limit of '5-per-1m' of the plan 'trial' falls from 100 to 5",
    ])
  })

  it('a shape that is gone loses what was consumed', () => {
    expect(changes([gcra], [log])).toEqual([expect.stringContaining('LOST_SHAPE')])
  })

  it('a key of the application that becomes one of the file is reported, and one of the file that goes', () => {
    const by = (given?: string) =>
      readPolicies(JSON.stringify({ limiters: { api: { policies: [log], ...(given && { by: given }) } } }))
    const of = (after: string | undefined, before: string | undefined) =>
      changesAgainst(by(after), by(before)).map(({ code, message }) => `${code}: ${message.split(':')[0]}`)
    expect(of('ip', undefined)).toEqual(["LOST_BY: by was none and becomes 'ip'"])
    expect(of(undefined, 'ip')).toEqual(["LOST_BY: by was 'ip' and becomes none"])
    expect([of('ip', 'ip'), of(undefined, undefined)]).toEqual([[], []])
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
