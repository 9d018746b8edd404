import { Ceiling } from '../../src/adaptive/ceiling.js'

/** A limit in steps of 1 that is believed after two calls, and the instants at which it changes. */
function open(bounds = { min: 1, initial: 10, max: 1000 }) {
  let now = 0
  const measure = { step: 1, windowMs: 1000, isProven: (_: number, served: number) => served >= 2 }
  const ceiling = new Ceiling(bounds, measure, () => now)
  const end = (refused: boolean, afterMs = 100, ms = 0) => {
    now += afterMs
    return ceiling.ended(ms, refused, 1)
  }
  return {
    ceiling,
    end,
    now: () => now,
    serve: (calls = 2, afterMs = 100) => Array.from({ length: calls }, () => end(false, afterMs)).at(-1),
    /** Milliseconds until calls that are served raise the limit. */
    untilTrial() {
      const [from, { limit }] = [now, ceiling]
      while (ceiling.limit === limit) end(false)
      return now - from
    },
  }
}

/** At a ceiling of 100, during the first small trial. */
function trying() {
  const opened = open({ min: 1, initial: 100, max: 1000 })
  const failedTrial = () => {
    opened.end(true)
    return opened.untilTrial()
  }
  opened.serve()
  failedTrial()
  return { ...opened, failedTrial }
}

it('goes up by half of itself while calls are served, to max', () => {
  const { ceiling, serve } = open({ min: 1, initial: 10, max: 30 })
  expect([serve(), ceiling.limit]).toEqual(['served', 15])
  serve()
  expect(ceiling.limit).toBe(22.5)
  serve(10)
  expect(ceiling.limit).toBe(30)
})

it('goes back to the limit that was served at the first refusal, and takes a small step later', () => {
  const { ceiling, serve, end, untilTrial } = open()
  serve()
  expect([end(true), ceiling.limit]).toEqual(['refused', 10])
  expect(untilTrial()).toBe(12_000)
  expect(ceiling.limit).toBe(11)
})

it('takes no account of a call that was sent under another limit', () => {
  const { ceiling, serve, end } = open()
  serve()
  end(true, 50, 60)
  expect(ceiling.limit).toBe(15)
})

it('tries more than its ceiling half as often after each trial that fails', () => {
  const { ceiling, failedTrial } = trying()
  const pauses = Array.from({ length: 7 }, failedTrial)
  expect(ceiling.limit).toBe(105)
  expect(pauses).toEqual([24_000, 48_000, 96_000, 192_000, 240_000, 240_000, 240_000])
})

it('keeps what a trial has found, and tries again in half the time', () => {
  const { ceiling, serve, untilTrial } = trying()
  serve()
  expect(ceiling.limit).toBe(105)
  expect(untilTrial()).toBeLessThanOrEqual(6000)
  expect(ceiling.limit).toBe(105 * 1.05)
})

describe('outside of trials', () => {
  /** At a limit of 100, before the next trial. */
  function rest() {
    const opened = open({ min: 10, initial: 100, max: 1000 })
    opened.serve()
    opened.end(true)
    return opened
  }

  it('a single refusal changes nothing, since the trial of another process may cause it', () => {
    const { ceiling, end } = rest()
    end(true)
    expect(ceiling.limit).toBe(100)
    end(true, 5001)
    expect(ceiling.limit).toBe(100)
  })

  it('each second refusal in a row lowers it by a tenth, and never below min', () => {
    const { ceiling, end } = rest()
    const limits = Array.from({ length: 8 }, () => {
      end(true)
      return Math.round(ceiling.limit)
    })
    expect(limits).toEqual([100, 90, 90, 81, 81, 73, 73, 66])
    for (let i = 0; i < 50; i++) end(true)
    expect(ceiling.limit).toBe(10)
  })

  it('a refusal doubles the time to the next trial', () => {
    const { end, untilTrial } = rest()
    end(true)
    expect(untilTrial()).toBe(24_000)
  })
})
