import { readLogs, suggest, type SuggestOptions } from '@sluice/cli'
import { scenarioAt } from '../address.js'
import { boundedShelf, countsOf, problemOf, scenarioOf } from '../log-calls.js'
import { run } from '../run.js'
import { shopLog } from '../../../packages/bench/src/logs/sample.js'
import { readScenario } from '../scenario.js'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

async function* chunks(text: string) {
  yield new TextEncoder().encode(text)
}

function reading(text: string) {
  return readLogs([{ name: 'a.log', chunks: chunks(text) }], { selectors: [{}] })
}

/** Lines of a minute and the one after it, by so many callers in turn. */
function logOf(lines: number, callers: number): string {
  const line = (_: unknown, i: number) =>
    `10.${(i % callers) >> 8}.${(i % callers) & 255}.1 - - [05/Jan/2026:09:0${Math.floor((2 * i) / lines)}:00 +0000] "GET / HTTP/1.1" 200 5\n`
  return Array.from({ length: lines }, line).join('')
}

const OPTIONS: SuggestOptions = { windows: [MINUTE], algorithm: 'slidingLog', untouched: 99.9 }

describe("the calls of a log's caller", () => {
  const times = (count: number, gap: number, from = 0) =>
    Array.from({ length: count }, (_, i) => from + i * gap)
  it.each([
    ['a burst after an hour', [...times(400, 10_000), ...times(60, 100, 4_000_000)], 10_000, 40, 20],
    ['more in a minute than an address holds', times(6000, 20), MINUTE, 1000, 2000],
    ['that come in fractions of a millisecond', times(6000, 20.01, 0.7), MINUTE, 1000, 1999],
    ['more in an hour than an address holds', times(1200, 3000), HOUR, 900, 300],
    ['a call an hour before a burst', [...times(240, HOUR), ...times(60, 100, 240 * HOUR)], MINUTE, 30, 30],
    ['of days', times(6000, 144_000), DAY, 400, 200],
  ])('are denied as in the log: %s', async (_, calls, windowMs, limit, denied) => {
    const { scenario, problem } = scenarioAt(scenarioOf(calls, windowMs, limit))
    expect(problem).toBeUndefined()
    const read = readScenario(scenario)
    expect(read.problems).toEqual({})
    const [column] = await run(read.scenario)
    expect(column!.totals.denied).toBe(denied)
  })

  it('that no address can carry are refused', () => {
    expect(() => scenarioOf(times(150_000, 500), DAY, 1000)).toThrow('150000 calls')
  })

  it('have the window as a policy file has it', () => {
    expect(scenarioOf([0], DAY, 5)).toContain('window:1d')
  })
})

describe('a log that a tab cannot read', () => {
  it('of more calls than it holds names the command, quoted for a shell', async () => {
    const options = { ...OPTIONS, shelf: boundedShelf(2 ** 20, () => {}) }
    const error = await suggest(await reading(logOf(70_000, 1)), options).catch((thrown: Error) => thrown)
    expect(problemOf(error as Error, 'my log (1).txt')).toMatch(
      /npx @sluice\/cli suggest 'my log \(1\)\.txt'$/,
    )
  })

  it('of more callers than it holds names the command too, as their names take memory', async () => {
    const callers = 5000
    for (const [most, refused] of [
      [200 * callers, false],
      [100 * callers, true],
    ] as const) {
      const options = { ...OPTIONS, shelf: boundedShelf(most, () => {}) }
      const found = await suggest(await reading(logOf(callers, callers)), options).catch(
        (thrown: Error) => thrown,
      )
      expect(found instanceof RangeError).toBe(refused)
      if (refused) expect(problemOf(found as Error, 'a.log')).toMatch(/ or callers, .* suggest a\.log$/)
    }
  })

  it.each([
    [
      'user=alice@example.com logged in\n',
      /^a\.log: no field for 'time' was found; no format reads it [^:]*$/,
    ],
    [
      '{"time":"2026-01-01T00:00:00Z","user":"alice"}\n',
      /--field ip=PATH of the command line: npx .* a\.log$/,
    ],
    ['PK\u0003\u0004alice', /^a\.log: a file of zip: unpack it, and give sluice what comes out$/],
  ])('is refused without a line of it: %j', async (log, message) => {
    const error = await reading(log).catch((thrown: Error) => thrown)
    const problem = problemOf(error as Error, 'a.log')
    expect(problem).toMatch(message)
    expect(problem).not.toContain('alice')
  })
})

it('the counts of a log have no line of it, and no name of a caller', async () => {
  const report = await suggest(await reading(`${logOf(60, 3)}10.9.9.9 is no line\n`), OPTIONS)
  const counts = countsOf(report)
  expect(counts.basis).toMatchObject({ read: 60, callers: 3, skipped: [[expect.any(String), 1]] })
  expect(counts.windows[0]).toMatchObject({ windowMs: MINUTE, window: '1m', peaks: [[10, 3]] })
  expect(JSON.stringify(counts)).not.toContain('10.')
})

it('the sample is a log of which every line is read', async () => {
  const { basis, windows } = await suggest(await reading([...shopLog()].join('')), OPTIONS)
  expect(basis).toMatchObject({ read: basis.lines, skipped: {}, calls: basis.lines })
  expect(windows[0]!.highest.map(({ key }) => key).slice(0, 2)).toEqual(['203.0.113.99', '203.0.113.7'])
  expect(windows[0]!.recommended!.policy.limit).toBeLessThan(30)
})
