import { memoryStore, tokenBucket } from '../../src/index.js'
import { keyOf, play, type Row } from './timeline.js'

describe('token bucket with greedy refill', () => {
  it('starts full and refills all the time', () => {
    const table: Row[] = [
      // ms, cost, allowed, remaining, retryAfterMs, resetAfterMs
      [0, 4, true, 6, 0, 2000],
      [0, 6, true, 0, 0, 5000],
      [0, 1, false, 0, 500, 5000],
      [250, 1, false, 0, 250, 4750],
      [500, 1, true, 0, 0, 5000],
      [1000, 4, false, 1, 1500, 4500],
      [2500, 4, true, 0, 0, 5000],
      [7499, 0, true, 9, 0, 1],
      [7500, 0, true, 10, 0, 0],
      [60_000, 11, false, 10, Infinity, 0],
      [60_000, 10, true, 0, 0, 5000],
    ]
    expect(play([tokenBucket({ limit: 2, window: '1s', capacity: 10 })], table)).toEqual(table)
  })

  it('holds `limit` tokens unless told otherwise', () => {
    const decide = keyOf([tokenBucket({ limit: 3, window: '1m' })])
    expect([1, 1, 1, 1].map((cost) => decide(0, cost).allowed)).toEqual([true, true, true, false])
  })
})

describe('token bucket with interval refill', () => {
  it('gets `limit` tokens together at each multiple of the window', () => {
    const table: Row[] = [
      [300, 10, true, 0, 0, 1700],
      [999, 1, false, 0, 1, 1001],
      [1000, 5, true, 0, 0, 2000],
      [1500, 6, false, 0, 1500, 1500],
      [2000, 6, false, 5, 1000, 1000],
      [3000, 6, true, 4, 0, 2000],
      [5000, 0, true, 10, 0, 0],
      [5000, 11, false, 10, Infinity, 0],
    ]
    expect(play([tokenBucket({ limit: 5, window: '1s', capacity: 10, refill: 'interval' })], table)).toEqual(
      table,
    )
  })

  it('never holds more than its capacity', () => {
    const table: Row[] = [
      [0, 2, true, 1, 0, 1000],
      [10_000, 3, true, 0, 0, 1000],
      [10_000, 1, false, 0, 1000, 1000],
    ]
    expect(play([tokenBucket({ limit: 3, window: '1s', refill: 'interval' })], table)).toEqual(table)
  })

  it('says when as many tokens as it holds are there again', () => {
    const table: Row[] = [
      [0, 1, true, 2, 0, 1000],
      [0, 3, false, 2, 1000, 1000],
    ]
    expect(play([tokenBucket({ limit: 3, window: '1s', refill: 'interval' })], table)).toEqual(table)
  })

  it('is full again when the refills have come that its bookings wait for, and those after them', () => {
    const keyspace = memoryStore({ clock: () => 0 }).keyspace(
      'x',
      [tokenBucket({ limit: 2, window: '1s', refill: 'interval' })],
      () => {},
    )
    void keyspace.decide('book', 'a', 2, 0)
    void keyspace.decide('book', 'a', 1, 1_000_000)
    expect(keyspace.decide('peek', 'a', 1, 0)).toMatchObject({ resetAt: 2_000_000 })
  })
})
