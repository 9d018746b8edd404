import * as fc from 'fast-check'
import { replay, suggest, type SuggestOptions } from '@sluice/cli'
import { algorithms } from '@sluice/core/store'
import { type AlgorithmName, makePolicy } from '@sluice/policies'
import { findShapes, tiers } from '@sluice/testing/internal'
import { Cell, peakIn } from '../src/trace/cell.js'
import { memoryShelf } from '../src/trace/trace.js'
import { callAt, readingOf } from './calls.js'
import { lineAt, readAll, sourceOf } from './bytes.js'

const S = 1_760_104_536
const OPTIONS: SuggestOptions = { windows: [10_000], algorithm: 'slidingLog', untouched: 90 }

/** A day's traffic in small: most callers come now and then, the last two in bursts. */
const traffic = Array.from({ length: 4000 }, (_, i) => {
  const caller = i % 5 === 0 ? 38 + ((i / 5) % 2) : (i * 7919) % 38
  return callAt(S * 1e6 + Math.floor(i / 8) * 1_000_000 + ((i * 104_729) % 1_000_000), `10.0.0.${caller}`)
}).sort((one, other) => one.at - other.at)

describe('a caller whose units always pass', () => {
  const { shapes } = findShapes()
  it.each(shapes.map((shape) => [shape.title, shape] as const))('is never denied under %s', (_, shape) => {
    const gaps = fc.array(fc.tuple(fc.integer({ min: 0, max: 12 }), fc.integer({ min: 1, max: 4 })), {
      minLength: 1,
      maxLength: 60,
    })
    let leftOut = 0
    fc.assert(
      fc.property(tiers(shape, 1), gaps, ([numbers], list) => {
        const cell = new Cell(shape.factory(numbers!))
        let at = 1_700_000_000_123_457
        const times = Float64Array.from(list, ([gap]) => (at += Math.floor((gap * cell.policy.window) / 7)))
        const calls = {
          caller: 0,
          times,
          costs: Uint32Array.from(list, ([, cost]) => cost),
          from: 0,
          to: list.length,
          looks: 0,
        }
        if (peakIn(calls, cell.span) > cell.policy.capacity) return
        leftOut++
        expect(cell.replay(calls).denied).toBe(0)
      }),
      { numRuns: 400 },
    )
    expect(leftOut).toBeGreaterThan(10)
  })
})

/** Those whose window is an option: the log is too short for a day. */
const NAMES = (Object.keys(algorithms) as AlgorithmName[]).filter(
  (name) => 'window' in algorithms[name].options,
)

describe('suggest', () => {
  it.each(NAMES)('recommends a limit of %s that replay confirms to the call', async (algorithm) => {
    const { windows, basis } = await suggest(readingOf(traffic), { ...OPTIONS, algorithm })
    const { recommended, cells } = windows[0]!
    const { policy } = recommended!
    const limiters = [{ name: 'api', policies: [makePolicy(policy)], by: undefined, where: undefined }]
    const { answers } = await replay(readingOf(traffic), { limiters })
    const { figures } = cells.find(({ limit }) => limit === policy.limit)!
    const { denied, callersHit, longestLockOutMs, worst } = answers[0]!.limiters[0]!
    expect(figures).toMatchObject({ denied, callersHit, longestLockOutMs })
    expect(denied).toBeGreaterThan(0)
    expect(figures!.worst.map(({ denied: each }) => each)).toEqual(worst.map(({ denied: each }) => each))
    expect(callersHit / basis.callers).toBeLessThanOrEqual(0.1)
  })

  it.each([1, 7, 30])(
    'recommends a calendarWindow for a window of %i days that replay confirms',
    async (days) => {
      const calls = traffic.map(({ at, keys }, i) => callAt(at + i * 2_600_000_000, keys[0])) // 120 days
      const options = { ...OPTIONS, algorithm: 'calendarWindow', windows: [days * 86_400_000] } as const
      const { windows } = await suggest(readingOf(calls), options)
      const { policy } = windows[0]!.recommended!
      expect(policy).toMatchObject({ every: { 1: 'day', 7: 'week', 30: 'month' }[days] })
      const limiters = [{ name: 'api', policies: [makePolicy(policy)], by: undefined, where: undefined }]
      const { answers } = await replay(readingOf(calls), { limiters })
      const { denied, callersHit } = answers[0]!.limiters[0]!
      const { figures } = windows[0]!.cells.find(({ limit }) => limit === policy.limit)!
      expect(figures).toMatchObject({ denied, callersHit })
      expect(denied).toBeGreaterThan(0)
    },
  )

  it('refuses a calendarWindow for a window that is no period', async () => {
    const options = { ...OPTIONS, algorithm: 'calendarWindow', windows: [43_200_000] } as const
    await expect(suggest(readingOf(traffic), options)).rejects.toThrow(`every must be 'day', 'week', 'month'`)
  })

  it.each(NAMES)('recommends the smallest such limit of %s', async (algorithm) => {
    const { windows } = await suggest(readingOf(traffic), { ...OPTIONS, algorithm })
    const { limit } = windows[0]!.recommended!.policy
    const smaller = await suggest(readingOf(traffic), { ...OPTIONS, algorithm, limits: [limit - 1] })
    const { figures } = smaller.windows[0]!.cells.find((cell) => cell.limit === limit - 1)!
    expect(figures!.callersHit / 40).toBeGreaterThan(0.1)
  })

  it('has no figure for a limit that reaches less far than ten units of the times, and recommends none', async () => {
    const log = Array.from({ length: 100 }, (_, i) => lineAt(S + i)).join('')
    const answer = async (options: Partial<SuggestOptions>) => {
      const { calls, reading: read } = await readAll([sourceOf('a', log)])
      return suggest({ ...read, batches: readingOf(calls).batches }, { ...OPTIONS, ...options })
    }
    const { windows } = await answer({ windows: [9000, 10_000, 3_600_000] })
    expect(windows.map(({ without, recommended }) => [without, recommended?.policy.limit])).toEqual([
      ['this log is too coarse', undefined],
      [undefined, 10],
      ['this log is too short', undefined],
    ])
    const {
      windows: [gcra],
    } = await answer({ windows: [60_000], algorithm: 'gcra', burst: 1, limits: [5, 12] })
    expect(gcra!.cells.map(({ limit, figures }) => [limit, figures !== undefined])).toEqual([
      [5, true],
      [12, false],
      [60, false],
    ])
    expect(gcra!.recommended).toBeUndefined()
  })

  it('names the worst callers, with their calls, and the next peak', async () => {
    const calls = [...Array<undefined>(20)].map((_, i) => callAt(S * 1e6 + i * 1e6, `10.0.0.${i}`))
    const burst = [...Array<undefined>(30)].map((_, i) => callAt(S * 1e6 + 19e6 + i, '192.0.2.1'))
    const { windows, basis } = await suggest(readingOf([...calls, ...burst]), OPTIONS)
    const { recommended, cells, peaks, highest } = windows[0]!
    expect(basis).toMatchObject({ calls: 50, callers: 21 })
    expect(highest[0]).toEqual({ key: '192.0.2.1', peak: 30, calls: 30 })
    expect(highest.map(({ peak }) => peak)).toEqual([30, ...Array<number>(9).fill(1)])
    expect(peaks).toEqual([
      [1, 20],
      [30, 1],
    ])
    expect(recommended).toEqual({ policy: { algorithm: 'slidingLog', limit: 1, window: '10s' }, next: 30 })
    expect(cells[0]!.figures!.worst).toMatchObject([{ key: '192.0.2.1', calls: 30, denied: 29 }])
  })

  it('knows no limit that its algorithm does not take', async () => {
    const calls = Array.from({ length: 100_002 }, (_, i) =>
      callAt(S * 1e6 + i * 199, `10.0.0.${Number(i < 100_001)}`),
    )
    const { windows } = await suggest(readingOf(calls), { ...OPTIONS, windows: [20_000] })
    const { peaks, highest, recommended } = windows[0]!
    expect(peaks).toEqual([
      [1, 1],
      [null, 1],
    ])
    expect(highest.map(({ peak }) => peak)).toEqual([null, 1])
    expect(recommended).toBeUndefined()
  })
})

describe('an interruption', () => {
  const many = Array.from({ length: 600_000 }, (_, i) => callAt(S * 1e6 + i * 1000, `10.0.0.${i % 2}`))

  /** Interrupts when a block is read for the `turn`-th time: of two callers each has 73 blocks, which are read twice. */
  const interrupted = async (turn: number) => {
    const controller = new AbortController()
    const { write, read } = memoryShelf()
    let reads = 0
    const shelf = {
      write,
      read(index: number, into: Uint8Array) {
        if (++reads === turn) controller.abort()
        read(index, into)
      },
    }
    const report = await suggest(readingOf(many), { ...OPTIONS, shelf, signal: controller.signal })
    return { reads, window: report.windows[0]!, isComplete: report.basis.complete }
  }

  it('ends while callers are measured: what was found is who has which peak', async () => {
    const { reads, window, isComplete } = await interrupted(1)
    expect([reads, isComplete]).toEqual([73, false])
    const highest = [{ key: '10.0.0.0', peak: 5000, calls: 300_000 }]
    expect(window).toEqual({
      windowMs: 10_000,
      without: 'interrupted',
      cells: [],
      peaks: [[5000, 1]],
      highest,
    })
  })

  it('ends while calls are decided: what was found is the limits, without figures of some callers alone', async () => {
    const { reads, window, isComplete } = await interrupted(147)
    expect([reads, isComplete]).toEqual([219, false])
    expect(window).toMatchObject({ without: 'interrupted', cells: [{ limit: 5000 }], peaks: [[5000, 2]] })
    expect(window.recommended?.policy.limit).toBe(5000)
    expect(window.cells[0]).not.toHaveProperty('figures')
  })

  it('of the reading leaves what was read to be decided', async () => {
    const whole = await suggest(readingOf(traffic), OPTIONS)
    const { windows, basis } = await suggest(readingOf(traffic), { ...OPTIONS, signal: AbortSignal.abort() })
    expect([windows, basis.complete]).toEqual([whole.windows, false])
  })
})

describe('a lock-out', () => {
  it('lasts from the first of denials in a row until the last of them would have passed', async () => {
    const seconds = [0, 5, 7.0001, 10, 12, 40, 60]
    const calls = seconds.map((second) => callAt(S * 1e6 + second * 1e6))
    const policies = [makePolicy({ algorithm: 'slidingLog', limit: 1, window: '10s' })]
    const limiters = [{ name: 'api', policies, by: undefined, where: undefined }]
    const { answers } = await replay(readingOf(calls), { limiters })
    const { windows } = await suggest(readingOf(calls), { ...OPTIONS, limits: [1] })
    const expected = { denied: 3, callersHit: 1, longestLockOutMs: 8000 } // from 12 until 20, not from 5
    expect(answers[0]!.limiters[0]).toMatchObject(expected)
    expect(windows[0]!.cells[0]!.figures).toMatchObject(expected)
  })

  it('of a cost that never passes has no end', async () => {
    const { windows } = await suggest(readingOf([callAt(S * 1e6, 'a', 5), callAt(S * 1e6 + 20e6)]), {
      ...OPTIONS,
      limits: [2],
    })
    expect(windows[0]!.cells[0]!.figures).toMatchObject({ denied: 1, longestLockOutMs: null })
  })
})

describe('a log of whole seconds', () => {
  /** 500 pairs of calls 0.2 s apart, each across the end of a second. */
  const pairs = Array.from({ length: 500 }, (_, i) => lineAt(S + i * 10) + lineAt(S + i * 10 + 1)).join('')
  const answersFor = async (window: string) => {
    const { calls, reading } = await readAll([sourceOf('a', pairs)])
    const policies = [makePolicy({ algorithm: 'slidingLog', limit: 1, window })]
    const limiters = [{ name: 'api', policies, by: undefined, where: undefined }]
    const { answers } = await replay({ ...reading, batches: readingOf(calls).batches }, { limiters })
    return answers.map(({ spread, limiters: [api] }) => [spread, api!.denied])
  }

  it('gives three answers about a window of one second: the truth, 500 denied, is one of them', async () => {
    expect(await answersFor('1s')).toEqual([
      ['evenly', 0],
      ['start', 0],
      ['alternating', 500],
    ])
  })

  it('gives one answer about a window of ten seconds', async () => {
    expect(await answersFor('10s')).toHaveLength(1)
  })

  it('lies about nothing where a caller calls more often: all at the start are denied but one', async () => {
    const { calls, reading } = await readAll([sourceOf('a', lineAt(S).repeat(5))])
    const limiters = [
      {
        name: 'api',
        policies: [makePolicy({ algorithm: 'slidingLog', limit: 1, window: '200ms' })],
        by: undefined,
        where: undefined,
      },
    ]
    const { answers } = await replay({ ...reading, batches: readingOf(calls).batches }, { limiters })
    expect(answers.map(({ limiters: [api] }) => api!.denied)).toEqual([0, 4, 4])
  })
})
