import { findShapes, sampleOf, type Shape } from '@sluice/testing/internal'
import { gcra, leakyBucket, type Policy, slidingLog, slidingWindow, tokenBucket } from '../../src/index.js'

const hour = { limit: 10, window: '1h' } as const

/** What is in the keys of every store: to change one is to lose what was consumed. */
const NAMES: Readonly<Record<string, readonly string[]>> = {
  'fixed-window': ['fixed-window'],
  gcra: ['gcra', 'gcra-slots', 'gcra-slots'],
  'leaky-bucket': ['leaky-bucket'],
  'sliding-log': ['sliding-log'],
  'sliding-window': [
    'sliding-window',
    'sliding-window',
    'sliding-window-weighted',
    'sliding-window-weighted',
  ],
  'token-bucket': ['token-bucket', 'token-bucket-interval'],
}

describe('a policy', () => {
  const { shapes } = findShapes()
  const titleOf = (shape: Shape) => shape.title.split(',')[0]!

  it.each(shapes)('of $title has the name of its factory, alone or before a variant', (shape) => {
    const { name } = sampleOf(shape).algorithm
    // All debts with slots are one algorithm.
    expect(name).toMatch(new RegExp(`^(${titleOf(shape)}(-[a-z]+)?|gcra-slots)$`))
  })

  it.each(Object.entries(NAMES))('of %s has the names that are in its keys', (title, names) => {
    const own = shapes.filter((shape) => titleOf(shape) === title)
    expect(own.map((shape) => sampleOf(shape).algorithm.name)).toEqual(names)
  })
})

describe('a number that cannot work', () => {
  const wrong: readonly (readonly [() => Policy, string, string])[] = [
    [
      () => slidingLog({ limit: 100_001, window: '1m' }),
      'INVALID_LIMIT',
      'limit of a sliding log must be at most 100000 (use slidingWindow or calendarWindow beyond), got 100001',
    ],
    [
      () => slidingWindow({ ...hour, count: 'half' as 'whole' }),
      'INVALID_OPTION',
      `count must be 'whole' or 'weighted', got "half"`,
    ],
    [
      () => slidingWindow({ ...hour, buckets: 1001 }),
      'INVALID_BUCKETS',
      'buckets must be a whole number from 1 to 1000, got 1001',
    ],
    [
      () => slidingWindow({ limit: 10, window: '1ms', buckets: 3 }),
      'INVALID_BUCKETS',
      'buckets must divide the window of 1000 microseconds, got 3',
    ],
    [
      () => slidingWindow({ limit: 10, window: '2h', buckets: 7, count: 'weighted' }),
      'INVALID_BUCKETS',
      'buckets must divide the window of 7200000 milliseconds, got 7',
    ],
    [
      () => slidingWindow({ limit: 6_255_000, window: '1h', count: 'weighted' }),
      'CAPACITY_TOO_LARGE',
      "limit must be at most 6254999 for weighted buckets of this width (use more buckets, count: 'whole', or calendarWindow), " +
        'got 6255000',
    ],
    [
      () => gcra({ limit: 1_251_000, window: '1h' }),
      'CAPACITY_TOO_LARGE',
      'burst must be at most 1250999 for this window, got 1251000: use a smaller burst, a shorter window, or ' +
        'fixedWindow or calendarWindow, which have no such bound',
    ],
    [
      () => leakyBucket({ ...hour, capacity: 1_251_000 }),
      'CAPACITY_TOO_LARGE',
      'capacity must be at most 1250999 for this window, got 1251000: use a smaller capacity, a shorter window, or ' +
        'fixedWindow or calendarWindow, which have no such bound',
    ],
    [
      () => tokenBucket({ ...hour, capacity: 1_251_000 }),
      'CAPACITY_TOO_LARGE',
      'capacity must be at most 1250999 for this window, got 1251000: use a smaller capacity, a shorter window, or ' +
        'fixedWindow or calendarWindow, which have no such bound',
    ],
    [
      () => tokenBucket({ ...hour, refill: 'interval', capacity: 0 }),
      'INVALID_CAPACITY',
      'capacity must be a whole number from 1 to 2^52, got 0',
    ],
    [
      () => gcra({ ...hour, burst: 0 }),
      'INVALID_CAPACITY',
      'burst must be a whole number from 1 to 2^52, got 0',
    ],
    [
      () => tokenBucket({ ...hour, refill: 'hourly' as 'greedy' }),
      'INVALID_OPTION',
      `refill must be 'greedy' or 'interval', got "hourly"`,
    ],
  ]

  const cases = wrong.map(([make, code, message]) => [message, code, make] as const)

  it.each(cases)('is refused: %s', (message, code, make) => {
    expect(make).toThrow(expect.objectContaining({ code, message }))
  })

  it('leaves the largest number of buckets alone', () => {
    expect(slidingWindow({ ...hour, buckets: 1000 }).buckets).toBe(1000)
  })
})
