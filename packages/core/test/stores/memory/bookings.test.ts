import { FakeClock } from '@sluice/testing'
import { gcra, memoryStore } from '../../../src/index.js'

const HOUR_US = 3_600_000_000

/** A store of two limiters in which so many keys have a place booked ahead, `after` how many. */
function booked(keys: number) {
  const clock = new FakeClock()
  const store = memoryStore({ clock: clock.now })
  const policies = [gcra({ limit: 1, window: '1h' })]
  const [few, many] = ['few', 'many'].map((name) => store.keyspace(name, policies, () => {}))
  for (const [keyspace, count] of [
    [few, 10],
    [many, keys],
  ] as const) {
    for (let i = 0; i < count; i++) {
      void keyspace!.decide('book', `k${i}`, 1, 0)
      void keyspace!.decide('book', `k${i}`, 1, HOUR_US)
    }
  }
  const sweep = (): boolean => (store as unknown as { sweep(): boolean }).sweep()
  return { clock, store, few: few!, many: many!, sweep }
}

describe('keys with places booked ahead', () => {
  it('take no sweep longer than a slice of a millisecond, as it looks at the time after a few rows', () => {
    const { sweep } = booked(200_000)
    let now = 0
    const looks = jest.spyOn(performance, 'now').mockImplementation(() => (now += 0.01))
    for (let i = 0; i < 51; i++) {
      now = 0
      sweep()
      expect(now).toBeLessThan(1)
    }
    looks.mockRestore()
  })

  it('are freed once their places have passed and their allowance is full again', () => {
    const { clock, store, sweep } = booked(20_000)
    clock.pass(2 * 3_600_000 + 5000)
    for (let i = 0; i < 1000 && store.size > 0; i++) sweep()
    expect(store.size).toBe(0)
  })

  it('queue a call behind the place, whatever was swept meanwhile', () => {
    const { clock, many, sweep } = booked(100)
    clock.pass(1000)
    for (let i = 0; i < 10; i++) sweep()
    expect(many.decide('consume', 'k7', 1, 0)).toMatchObject({ reason: 'limit', remaining: 0 })
  })
})
