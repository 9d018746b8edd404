import { readLogs, suggest } from '@sluice/cli'
import { MOST_CHARACTERS, scenarioAt } from '../address.js'
import { boundedShelf, scenarioOf } from '../log-calls.js'
import { run } from '../run.js'
import { shopLog } from '../../../packages/bench/src/logs/sample.js'
import { readScenario } from '../scenario.js'

async function* chunks(text: string) {
  yield new TextEncoder().encode(text)
}

describe("the calls of a log's caller", () => {
  it('are those around his peak, which the limit denies as the log says', async () => {
    const quiet = Array.from({ length: 400 }, (_, i) => i * 10_000)
    const burst = Array.from({ length: 60 }, (_, i) => 4_000_000 + i * 100)
    const { scenario, problem } = scenarioAt(scenarioOf([...quiet, ...burst], 10_000, 40))
    expect(problem).toBeUndefined()
    const [column] = (await run(readScenario(scenario).scenario))!
    expect(column!.totals.denied).toBe(20)
  })

  it('are cut to what an address holds, and to a day', async () => {
    let [at, seed] = [0, 1]
    const odd = Array.from(
      { length: 5000 },
      () => (at += (seed = (seed * 48_271) % 2_147_483_647) % 9_999_991),
    )
    const text = scenarioOf(odd, 60_000, 5)
    expect(text.length).toBeLessThanOrEqual(MOST_CHARACTERS)
    expect(scenarioAt(text).problem).toBeUndefined()
    const { problems } = readScenario(scenarioAt(text).scenario)
    expect(problems).toEqual({})
  })
})

it('a log of more calls than a tab holds names the command', async () => {
  const lines = Array.from(
    { length: 300_000 },
    (_, i) => `10.0.0.1 - - [05/Jan/2026:09:0${Math.floor(i / 60_000)}:00 +0000] "GET / HTTP/1.1" 200 5\n`,
  )
  const reading = await readLogs([{ name: 'a.log', chunks: chunks(lines.join('')) }], { selectors: [{}] })
  const shelf = boundedShelf(2 ** 20, 'a.log', () => {})
  const options = { windows: [60_000], algorithm: 'slidingLog', untouched: 99.9, shelf } as const
  await expect(suggest(reading, options)).rejects.toThrow('npx @sluice/cli suggest a.log')
})

it('the sample is a log of which every line is read', async () => {
  const reading = await readLogs([{ name: 'sample', chunks: chunks([...shopLog()].join('')) }], {
    selectors: [{}],
  })
  const { basis, windows } = await suggest(reading, {
    windows: [60_000],
    algorithm: 'slidingLog',
    untouched: 99.9,
  })
  expect(basis).toMatchObject({ read: basis.lines, skipped: {}, calls: basis.lines })
  expect(windows[0]!.highest.map(({ key }) => key).slice(0, 2)).toEqual(['203.0.113.99', '203.0.113.7'])
  expect(windows[0]!.recommended!.policy.limit).toBeLessThan(30)
})
