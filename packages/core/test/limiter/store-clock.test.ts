import { StoreClock } from '../../src/limiter/store-clock.js'

/** The store's clock is 1,000 ahead of this process's; instants are in microseconds. */
const AHEAD = 1000

describe('an instant of the store', () => {
  it('follows the fastest answer, however late another is received', () => {
    const clock = new StoreClock()
    expect(clock.toLocal(5000 + AHEAD, 20 + AHEAD, 0, 40)).toBe(5020)
    expect(clock.toLocal(9000 + AHEAD, 110 + AHEAD, 100, 8000)).toBe(9020)
  })

  it('never comes early, nor later than the answer alone implies', () => {
    const clock = new StoreClock()
    for (const [now, sent, received] of [
      [10, 0, 500],
      [700, 600, 701],
      [950, 800, 2000],
    ] as const) {
      const comes = clock.toLocal(90_000 + AHEAD, now + AHEAD, sent, received)
      expect(comes).toBeGreaterThanOrEqual(90_000)
      expect(comes).toBeLessThanOrEqual(90_000 + received - now)
    }
  })

  it('follows the latest answer alone after a clock was set', () => {
    const clock = new StoreClock()
    clock.toLocal(AHEAD, AHEAD, 0, 0)
    const [sent, received] = [100, 200]
    for (const set of [-3_600_000_000, 3_600_000_000]) {
      const now = 150 + AHEAD + set
      const comes = clock.toLocal(now + 5000, now, sent, received)
      expect(comes).toBeGreaterThanOrEqual(sent + 5000)
      expect(comes).toBeLessThanOrEqual(received + 5000)
    }
  })

  it('does not follow answers of long ago, because clocks drift', () => {
    const clock = new StoreClock()
    clock.toLocal(0, 0, 0, 0)
    const [sent, now, received] = [5_000_000, 5_000_100, 5_000_900]
    expect(clock.toLocal(now + 5000, now, sent, received)).toBe(received + 5000)
  })
})
