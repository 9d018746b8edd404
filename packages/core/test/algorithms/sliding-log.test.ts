import { slidingLog } from '../../src/index.js'
import { State } from '../../src/algorithms/contract/state.js'
import { busiest, crowds, itInBulk, keyOf, passed, play, type Row } from './timeline.js'

describe('sliding log', () => {
  it('forgets an entry exactly one window after it was made', () => {
    const table: Row[] = [
      // ms, cost, allowed, remaining, retryAfterMs, resetAfterMs
      [100, 1, true, 1, 0, 1000],
      [400, 1, true, 0, 0, 1000],
      [500, 1, false, 0, 600, 900],
      [1099, 1, false, 0, 1, 301],
      [1100, 1, true, 0, 0, 1000],
      [1399, 1, false, 0, 1, 701],
      [1400, 1, true, 0, 0, 1000],
      [9000, 0, true, 2, 0, 0],
    ]
    expect(play([slidingLog({ limit: 2, window: 1000 })], table)).toEqual(table)
  })

  it('waits for as many entries as the cost needs', () => {
    const table: Row[] = [
      [0, 2, true, 3, 0, 1000],
      [200, 2, true, 1, 0, 1000],
      [300, 2, false, 1, 700, 900],
      [300, 4, false, 1, 900, 900],
      [300, 6, false, 1, Infinity, 900],
      [1000, 2, true, 1, 0, 1000],
      [1200, 4, false, 3, 800, 800],
    ]
    expect(play([slidingLog({ limit: 5, window: 1000 })], table)).toEqual(table)
  })

  it('charges neither a second nor a minute unless both have room', () => {
    const policies = [slidingLog({ limit: 1, window: '1s' }), slidingLog({ limit: 5, window: '1m' })]
    const table: Row[] = [
      [0, 1, true, 0, 0, 60_000],
      [500, 1, false, 0, 500, 59_500],
      [1000, 1, true, 0, 0, 60_000],
      [1500, 1, false, 0, 500, 59_500],
      [2000, 1, true, 0, 0, 60_000],
      [3000, 1, true, 0, 0, 60_000],
      [4000, 1, true, 0, 0, 60_000],
      [4500, 1, false, 0, 55_500, 59_500],
      [5000, 1, false, 0, 55_000, 59_000],
      [59_999, 1, false, 0, 1, 4001],
      [60_000, 1, true, 0, 0, 60_000],
      [60_500, 1, false, 0, 500, 59_500],
    ]
    expect(play(policies, table)).toEqual(table)
  })

  it('names the policy that has least left, or that makes a call wait longest', () => {
    const decide = keyOf([slidingLog({ limit: 1, window: '1s' }), slidingLog({ limit: 5, window: '1m' })])
    const binding = [0, 500, 1000, 2000, 3000, 4000, 4500].map((ms) => decide(ms).policy)
    expect(binding).toEqual([...Array<string>(6).fill('1-per-1s'), '5-per-1m'])
  })

  it('keeps no more entries than can count', () => {
    const policy = slidingLog({ limit: 2, window: 1000 })
    const { take, admit } = policy.algorithm
    for (const charge of [take!, admit]) {
      const state = new State(new Float64Array(0))
      for (let ms = 0; ms < 100_000; ms += 500) {
        charge(state, policy, ms * 1000, 1, { remaining: 0, resetAt: 0 })
        expect(state.ring.size).toBeLessThanOrEqual(2)
      }
    }
  })

  itInBulk('never lets more than 240 pass in any hour, whenever they come', () => {
    const calls = passed([slidingLog({ limit: 240, window: '1h' })], crowds())
    expect(busiest(calls, 3_600_000)).toBe(240)
  })
})
