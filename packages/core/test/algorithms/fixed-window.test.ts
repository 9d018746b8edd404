import { fixedWindow } from '../../src/index.js'
import { busiest, crowds, itInBulk, passed, play, type Row } from './timeline.js'

describe('fixed window', () => {
  it('begins anew with each window', () => {
    const table: Row[] = [
      // ms, cost, allowed, remaining, retryAfterMs, resetAfterMs
      [0, 1, true, 1, 0, 3000],
      [0, 1, true, 0, 0, 3000],
      [0, 1, false, 0, 3000, 3000],
      [2999, 1, false, 0, 1, 1],
      [3000, 1, true, 1, 0, 3000],
      [3000, 1, true, 0, 0, 3000],
      [3000, 1, false, 0, 3000, 3000],
      [6000, 0, true, 2, 0, 0],
    ]
    expect(play([fixedWindow({ limit: 2, window: '3s' })], table)).toEqual(table)
  })

  it('aligns its windows to the epoch and not to the first call', () => {
    const table: Row[] = [
      [2900, 2, true, 0, 0, 100],
      [2900, 1, false, 0, 100, 100],
      [3000, 2, true, 0, 0, 3000],
      [5900, 1, false, 0, 100, 100],
      [6000, 1, true, 1, 0, 3000],
    ]
    expect(play([fixedWindow({ limit: 2, window: '3s' })], table)).toEqual(table)
  })

  it('admits a cost that fits beside recorded usage, and no other', () => {
    const table: Row[] = [
      [0, 4, true, 6, 0, 1000],
      [10, 7, false, 6, 990, 990],
      [20, 11, false, 6, Infinity, 980],
      [30, 6, true, 0, 0, 970],
    ]
    expect(play([fixedWindow({ limit: 10, window: '1s' })], table)).toEqual(table)
  })

  itInBulk('lets up to twice the limit pass around a boundary, and no more', () => {
    const policies = [fixedWindow({ limit: 240, window: '1h' })]
    const boundary = [3_599_999, 3_600_000].flatMap((ms) => Array<number>(300).fill(ms))
    expect(busiest(passed(policies, boundary), 2)).toBe(480)
    expect(busiest(passed(policies, crowds()), 3_600_000)).toBeLessThanOrEqual(480)
  })
})
