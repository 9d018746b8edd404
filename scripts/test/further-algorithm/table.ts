import { wideWindow } from '../../src/index.js'
import { play, type Row } from './timeline.js'

describe('wide window', () => {
  it('counts two windows together', () => {
    const table: Row[] = [
      // ms, cost, allowed, remaining, retryAfterMs, resetAfterMs
      [0, 2, true, 1, 0, 2000],
      [1500, 1, true, 0, 0, 500],
      [1500, 1, false, 0, 500, 500],
      [2000, 3, true, 0, 0, 2000],
    ]
    expect(play([wideWindow({ limit: 3, window: '1s' })], table)).toEqual(table)
  })
})
