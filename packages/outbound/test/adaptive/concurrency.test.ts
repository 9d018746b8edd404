import { adaptive } from '../../src/index.js'
import { AdaptiveConcurrency } from '../../src/adaptive/concurrency.js'

const MINUTE_MS = 60_000

/** Rounds of as many calls as the limit allows, and why they changed it, on a clock that begins at a full minute. */
function open(bounds = { min: 1, initial: 6, max: 100 }) {
  let now = 0
  const control = new AdaptiveConcurrency(bounds, () => now)
  return {
    control,
    now: () => now,
    round(ms: number, { refused = false, waited = true } = {}) {
      now += ms
      const changes = Array.from({ length: control.limit }, () => {
        const { limit } = control
        const reason = control.ended(ms, refused, waited)
        return control.limit === limit ? undefined : reason
      })
      return changes.filter((reason) => reason !== undefined)
    },
  }
}

it('measures its baseline at three calls at once, then allows the initial number', () => {
  const { control, round } = open()
  expect(control.limit).toBe(3)
  const reasons = Array.from({ length: 7 }, () => round(100)).flat()
  expect([reasons, control.limit]).toEqual([['baseline'], 6])
})

it('grows while calls wait and are as quick as at the baseline', () => {
  const { control, round } = open()
  for (let i = 0; i < 50; i++) round(100)
  expect(control.limit).toBeGreaterThan(10)
})

it('does not grow where no call waits', () => {
  const { control, round } = open()
  for (let i = 0; i < 100; i++) round(100, { waited: false })
  expect(control.limit).toBe(6)
})

it('falls while calls are slower than at the baseline, and never below min', () => {
  const { control, round } = open({ min: 2, initial: 20, max: 100 })
  for (let i = 0; i < 8; i++) round(100)
  expect(control.limit).toBe(20)
  const reasons = Array.from({ length: 40 }, () => round(1000)).flat()
  expect(new Set(reasons)).toEqual(new Set(['latency']))
  expect(control.limit).toBe(2)
})

it('goes back to what was served when calls are refused', () => {
  const { control, round } = open()
  while (control.limit < 8) round(100)
  expect(round(5, { refused: true })).toContain('refused')
  expect(control.limit).toBeLessThan(8)
})

it('measures the baseline anew at the next full minute, as the processes beside it do', () => {
  const { control, round, now } = open()
  while (now() < MINUTE_MS) round(100)
  expect(control.limit).toBe(3)
  for (let i = 0; i < 20 && control.limit === 3; i++) round(200)
  expect(control.limit).toBeGreaterThan(3)
  const before = control.limit
  for (let i = 0; i < 20; i++) round(140)
  expect(control.limit).toBeGreaterThanOrEqual(before)
})

it('measures the baseline of slow calls more rarely', () => {
  const { control, round, now } = open()
  while (control.limit === 3) round(10_000)
  const measuredAt: number[] = []
  while (measuredAt.length < 1) if (round(10_000).includes('baseline')) measuredAt.push(now())
  expect(measuredAt[0]).toBeGreaterThanOrEqual(16 * MINUTE_MS)
})

it.each([
  [{ min: 0, initial: 1, max: 2 }, 'INVALID_LIMIT', 'min'],
  [{ min: 1, initial: 1.5, max: 2 }, 'INVALID_LIMIT', 'initial'],
  [{ min: 1, initial: 3, max: 2 }, 'INVALID_OPTION', 'min <= initial <= max'],
  [{ min: 2, initial: 1, max: 2 }, 'INVALID_OPTION', 'min <= initial <= max'],
])('refuses the bounds %j', (bounds, code, message) => {
  expect(() => adaptive(bounds)).toThrow(
    expect.objectContaining({ code, message: expect.stringContaining(message) }),
  )
})
