import { slidingWindow } from '../../src/index.js'

type Options = Parameters<typeof slidingWindow>[0]

/** By what a limiter with leases books: windows are as short as the buckets allow, and limits as large. */
describe('the sliding window that leases are booked by', () => {
  const table: [options: Options, ttlMs: number, windowMs: number, limit: number][] = [
    [{ limit: 10, window: '1s', buckets: 8 }, 1, 1001, 10],
    [{ limit: 10, window: '2h', buckets: 8 }, 1, 7_200_001, 10],
    [{ limit: 10, window: '7h', buckets: 7 }, 1000, 25_201_001, 10],
    [{ limit: 10, window: '1s', buckets: 8, count: 'weighted' }, 1, 1001, 9],
    [{ limit: 10, window: 3_599_968, buckets: 256, count: 'weighted' }, 32, 3_600_000, 9],
    [{ limit: 10, window: 3_599_990, count: 'weighted' }, 11, 3_600_010, 9],
    [{ limit: 10, window: '2h', buckets: 8, count: 'weighted' }, 1, 7_200_008, 9],
    [{ limit: 2, window: '100ms', buckets: 1, count: 'weighted' }, 50, 150, 1],
  ]

  it.each(table)('%j for %i ms', (options, ttlMs, windowMs, limit) => {
    const policy = slidingWindow(options)
    expect(policy.algorithm.leasing!.book(policy, ttlMs)).toMatchObject({ windowMs, limit, capacity: limit })
  })
})
