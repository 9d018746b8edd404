import { gcra } from '../../src/index.js'
import { Tab } from './tab.js'
import { itInBulk, passed, play, type Row } from './timeline.js'

describe('gcra', () => {
  it('spaces calls evenly with a burst of 1: 600 a minute are one each 100 ms', () => {
    const table: Row[] = [
      // ms, cost, allowed, remaining, retryAfterMs, resetAfterMs
      [0, 1, true, 0, 0, 100],
      [50, 1, false, 0, 50, 50],
      [99, 1, false, 0, 1, 1],
      [100, 1, true, 0, 0, 100],
      [200, 1, true, 0, 0, 100],
      [250, 1, false, 0, 50, 50],
      [1000, 1, true, 0, 0, 100],
      [1000, 2, false, 0, Infinity, 100],
    ]
    expect(play([gcra({ limit: 600, window: '1m', burst: 1 })], table)).toEqual(table)
  })

  it('lets a burst pass, and after it one call each interval', () => {
    const table: Row[] = [
      [0, 1, true, 2, 0, 1000],
      [0, 1, true, 1, 0, 2000],
      [0, 1, true, 0, 0, 3000],
      [0, 1, false, 0, 1000, 3000],
      [999, 1, false, 0, 1, 2001],
      [1000, 1, true, 0, 0, 3000],
      [1500, 1, false, 0, 500, 2500],
      [3000, 2, true, 0, 0, 3000],
      [4500, 2, false, 1, 500, 1500],
      [5000, 2, true, 0, 0, 3000],
      [60_000, 3, true, 0, 0, 3000],
    ]
    expect(play([gcra({ limit: 1, window: '1s', burst: 3 })], table)).toEqual(table)
  })

  it('rounds waits up where the interval is no whole number of microseconds', () => {
    const table: Row[] = [
      [0, 1, true, 0, 0, 143],
      [142, 1, false, 0, 1, 1],
      [143, 1, true, 0, 0, 143],
    ]
    expect(play([gcra({ limit: 7, window: '1s', burst: 1 })], table)).toEqual(table)
  })

  itInBulk('keeps the rate of 3 a second under callers that never stop for ten minutes', () => {
    const calls = Array.from({ length: 600_000 / 5 }, (_, i) => i * 5)
    expect(passed([gcra({ limit: 3, window: '1s', burst: 3 })], calls)).toHaveLength(3 * 600 + 2)
  })

  it('gives no credit for the part of the tick in which the debt ends', () => {
    const tab = new Tab(gcra({ limit: 10, window: '2h' }))
    tab.charge(0, 1)
    // Half of a tick of 1 ms has passed, and what is left ends inside it: both need 720.001 s from now on.
    tab.charge(719.9995, 1)
    expect(tab.paidAt()).toBe(1440.0005)
  })
})
