import { AdaptiveRate } from '../../src/adaptive/rate.js'

function open(bounds = { min: 1, initial: 10, max: 1000 }) {
  let now = 0
  const rate = new AdaptiveRate(bounds, 1000, () => now)
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

it('is a policy of even turns, also where the rate is a fraction', () => {
  const { rate, serve } = open({ min: 0.1, initial: 0.25, max: 10 })
  expect(rate.policies).toMatchObject([{ limit: 15, windowMs: 60_000, capacity: 1, name: 'adaptive' }])
  serve(1, 9)
  expect(rate.policies).toMatchObject([{ limit: Math.round(60 * rate.limit) }])
  expect(rate.limit).toBeGreaterThan(0.25)
})
