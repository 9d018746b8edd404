import { slidingWindow } from '../../src/index.js'
import { State } from '../../src/algorithms/contract/state.js'
import { busiest, crowds, itInBulk, passed, play, type Row } from './timeline.js'

describe('sliding window of whole buckets', () => {
  it('counts a bucket until the window has left it altogether', () => {
    const table: Row[] = [
      // ms, cost, allowed, remaining, retryAfterMs, resetAfterMs
      [50, 3, true, 1, 0, 1050],
      [150, 1, true, 0, 0, 1050],
      [1050, 1, false, 0, 50, 150],
      [1099, 1, false, 0, 1, 101],
      [1100, 1, true, 2, 0, 1100],
      [1150, 3, false, 2, 50, 1050],
      [1200, 3, true, 0, 0, 1100],
    ]
    expect(play([slidingWindow({ limit: 4, window: 1000 })], table)).toEqual(table)
  })

  itInBulk('never lets more than 240 pass in any hour, whenever they come', () => {
    const calls = passed([slidingWindow({ limit: 240, window: '1h' })], crowds())
    expect(busiest(calls, 3_600_000)).toBe(240)
  })

  itInBulk('sustains the rate but for the bucket that it gives up', () => {
    const everySecond = Array.from({ length: 110 * 60 }, (_, second) => second * 1000)
    const calls = passed([slidingWindow({ limit: 60, window: '1m', buckets: 10 })], everySecond)
    expect(calls.length).toBe(60 * 100)
  })
})

describe('a total without its counts', () => {
  it.each(['whole', 'weighted'] as const)('ends with the newest bucket at the latest: %s', (count) => {
    const policy = slidingWindow({ limit: 10, window: 1000, buckets: 2, count })
    const state = new State(new Float64Array([4, 50, 0, 0, 0]))
    const view = { remaining: NaN, resetAt: NaN }
    policy.algorithm.view(state, policy, 2_100_000, view)
    expect(view).toEqual({ remaining: 10 - 50, resetAt: 2_500_000 })
  })
})

describe('sliding window of weighted buckets', () => {
  it('fades the window before with one bucket, as two counters do', () => {
    const table: Row[] = [
      [5000, 10, true, 0, 0, 15_000],
      [10_000, 1, false, 0, 1000, 10_000],
      [10_999, 1, false, 0, 1, 9001],
      [11_000, 1, true, 0, 0, 19_000],
      [12_000, 1, true, 0, 0, 18_000],
      [12_000, 2, false, 0, 2000, 18_000],
      [15_000, 3, true, 0, 0, 15_000],
      [20_000, 5, true, 0, 0, 20_000],
    ]
    expect(play([slidingWindow({ limit: 10, window: '10s', count: 'weighted', buckets: 1 })], table)).toEqual(
      table,
    )
  })

  it('fades only the oldest of several buckets', () => {
    const table: Row[] = [
      [0, 4, true, 6, 0, 15_000],
      [5000, 6, true, 0, 0, 15_000],
      [10_000, 1, false, 0, 1250, 10_000],
      [11_250, 1, true, 0, 0, 13_750],
      [12_500, 2, false, 1, 1250, 12_500],
      [15_000, 4, false, 3, 834, 10_000],
    ]
    expect(play([slidingWindow({ limit: 10, window: '10s', count: 'weighted', buckets: 2 })], table)).toEqual(
      table,
    )
  })

  it('does not count a bucket that has left the window, although its cell was never emptied', () => {
    const policy = slidingWindow({ limit: 10, window: '10s', count: 'weighted', buckets: 2 })
    const state = new State(new Float64Array(policy.algorithm.cells(policy)))
    policy.algorithm.admit(state, policy, 0, 4)
    const now = 27_500_000 // the oldest of its three buckets has the cell that was written
    const view = { remaining: 0, resetAt: 0 }
    policy.algorithm.view(state, policy, now, view)
    expect(view).toEqual({ remaining: 10, resetAt: now })
  })

  itInBulk('lets less than twice the limit pass in any hour', () => {
    const calls = passed([slidingWindow({ limit: 240, window: '1h', count: 'weighted' })], crowds())
    const most = busiest(calls, 3_600_000)
    expect(most).toBeGreaterThanOrEqual(240)
    expect(most).toBeLessThan(480)
  })
})
