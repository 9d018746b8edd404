import { leakyBucket } from '../../src/index.js'
import { passed, play, type Row } from './timeline.js'

describe('leaky bucket', () => {
  it('lets 15 of 20 calls at once pass, then one each two seconds', () => {
    const policies = [leakyBucket({ limit: 1, window: '2s', capacity: 15 })]
    const later = Array.from({ length: 10 }, (_, i) => (i + 1) * 1000)
    const calls = passed(policies, [...Array<number>(20).fill(0), ...later])
    expect(calls).toEqual([...Array<number>(15).fill(0), 2000, 4000, 6000, 8000, 10_000])
  })

  it('fits a cost while the level leaves room for it', () => {
    const table: Row[] = [
      // ms, cost, allowed, remaining, retryAfterMs, resetAfterMs
      [0, 14, true, 1, 0, 28_000],
      [0, 2, false, 1, 2000, 28_000],
      [1999, 2, false, 1, 1, 26_001],
      [2000, 2, true, 0, 0, 30_000],
      [2000, 16, false, 0, Infinity, 30_000],
      [3000, 1, false, 0, 1000, 29_000],
      [31_999, 0, true, 14, 0, 1],
      [32_000, 15, true, 0, 0, 30_000],
    ]
    expect(play([leakyBucket({ limit: 1, window: '2s', capacity: 15 })], table)).toEqual(table)
  })

  it('holds `limit` units unless told otherwise', () => {
    const calls = passed([leakyBucket({ limit: 5, window: '1s' })], Array<number>(9).fill(7))
    expect(calls).toHaveLength(5)
  })
})
