import { adaptiveRate, AdaptiveRates } from '../../src/adaptive/rate.js'
import { pass, useFakeTime } from '../fetch/limited-fetch.js'

function open(bounds = { min: 1, initial: 10, max: 1000 }) {
  let now = 0
  const rate = adaptiveRate(bounds, 1000, () => now)
  return {
    rate,
    /** Serves calls evenly at this many a second. */
    serve(perSecond: number, seconds: number, units = 1) {
      for (let i = 0; i < perSecond * seconds; i++) {
        now += 1000 / perSecond
        rate.ended(1, false, units)
      }
    },
  }
}

it('is believed once it was in use for longer than a window', () => {
  const { rate, serve } = open()
  serve(10, 1.1)
  expect(rate.limit).toBe(10)
  serve(10, 0.2)
  expect(rate.limit).toBe(15)
})

it('does not grow while less than it allows is sent', () => {
  const { rate, serve } = open()
  serve(7, 60)
  expect(rate.limit).toBe(10)
})

it('counts units and not calls', () => {
  const { rate, serve } = open()
  serve(2, 1.5, 5)
  expect(rate.limit).toBe(15)
})

describe('on the clock of turns', () => {
  useFakeTime()

  it('is given in even turns, also where it is a fraction, and stands in the decision', async () => {
    const rates = new AdaptiveRates({ min: 0.1, initial: 0.25, max: 10 }, 1000, () => performance.now())
    const turn = (key: string) => rates.acquire(key, { maxWait: 0 })
    expect(await turn('a')).toMatchObject({ allowed: true, limit: 0.25, limiter: 'adaptive' })
    expect(await turn('a')).toMatchObject({ allowed: false, limit: 0.25, retryAfterMs: 4000 })
    rates.ended('a', 'served', 0, 1)
    await pass(5000)
    expect(rates.ended('a', 'failed', 0, 9)).toBeUndefined()
    expect(rates.ended('a', 'served', 0, 1)).toEqual({ from: 0.25, limit: 0.375, reason: 'served' })
    expect(await turn('a')).toMatchObject({ allowed: true, limit: 0.375 })
    expect((await turn('a')).retryAfterMs).toBe(Math.ceil(8000 / 3))
    expect(await turn('b')).toMatchObject({ allowed: true, limit: 0.25 })
  })

  it.each([
    [100, { min: 0.025, initial: 0.025, max: 0.025 }],
    [100, { min: 0.01, initial: 0.01, max: 1 }],
    [1000, { min: 0.01, initial: 0.015, max: 10 }],
    [1000, { min: 0.02, initial: 0.025, max: 1_000_000 }],
    [60_000, { min: 0.01, initial: 0.025, max: 1000 }],
    [3_600_000, { min: 0.1, initial: 0.3, max: 1000 }],
    [1000, { min: 1, initial: 7.77, max: 1000 }],
    [1000, { min: 1, initial: 5000, max: 1_000_000 }],
    [60_000, { min: 1, initial: 500_000, max: 1_000_000 }],
  ])('has turns as far apart as it says, in windows of %i ms: %j', async (windowMs, bounds) => {
    const rates = new AdaptiveRates(bounds, windowMs, () => performance.now())
    const spanMs = windowMs / bounds.initial
    const calls = Math.max(1, Math.ceil(100 / spanMs)) // whole milliseconds are what is seen
    for (let i = 0; i < calls; i++) rates.acquire('k', { maxWait: '1d' }).catch(() => {})
    await pass(0)
    const { retryAfterMs } = await rates.acquire('k', { maxWait: 0 })
    expect(Math.abs(retryAfterMs / (calls * spanMs) - 1)).toBeLessThan(0.02)
    jest.clearAllTimers()
  })
})
