import { createLimiter, type Decision, memoryStore } from '@sluice/core'
import { scenarioAt } from '../address.js'
import { Limits, START_MS } from '../limits.js'
import { PRESETS } from '../presets.js'
import { answersAt, type ColumnResult, otherTime, run, shownTime } from '../run.js'
import { readScenario, type Scenario } from '../scenario.js'
import { replayed } from './replayed.js'
import { randomScenario } from './random-scenario.js'

async function resultsOf(typed: Scenario): Promise<readonly ColumnResult[]> {
  const { scenario, problems } = readScenario(typed)
  expect(problems).toEqual({})
  return await run(scenario)
}

function at(fragment: string): Scenario {
  const { scenario, problem } = scenarioAt(fragment)
  expect(problem).toBeUndefined()
  return scenario
}

describe('a preset', () => {
  it.each(PRESETS.map((each) => [each.id, each] as const))(
    '%s serves calls and keeps its promises',
    async (_, { fragment }) => {
      for (const { policies, totals } of await resultsOf(at(fragment))) {
        expect(totals.served).toBeGreaterThan(0)
        for (const { most, promise } of policies) expect(most).toBeLessThanOrEqual(promise)
      }
    },
  )
})

describe('a scenario', () => {
  it('is decided, call by call, as limiters of the library decide its calls', async () => {
    for (let seed = 0; seed < 40; seed++) {
      const { scenario } = readScenario(randomScenario(seed))
      const results = await run(scenario)
      for (const [i, column] of scenario.columns.entries()) {
        expect({ seed, ...(await replayed(scenario, column, results[i]!)) }).toEqual({
          seed,
          different: undefined,
        })
      }
    }
  })

  it('never passes what its policies promise', async () => {
    for (let seed = 100; seed < 140; seed++) {
      for (const { policies } of await resultsOf(randomScenario(seed))) {
        for (const { name, most, promise } of policies)
          expect({ seed, name, over: most > promise }).toEqual({ seed, name, over: false })
      }
    }
  })

  it('is the same at each run', async () => {
    const storm = PRESETS.find(({ id }) => id === 'storm')!
    expect(await resultsOf(at(storm.fragment))).toEqual(await resultsOf(at(storm.fragment)))
  })

  it('shows the window edge that lets twice the limit through, and the log that does not', async () => {
    const [fixed, log] = await resultsOf(at(PRESETS.find(({ id }) => id === 'boundary')!.fragment))
    expect(fixed!.policies[0]).toMatchObject({ most: 40, promise: 40, limit: 20 })
    expect(log!.policies[0]).toMatchObject({ most: 20, promise: 20 })
  })

  it('has clients that obey Retry-After served, each once', async () => {
    const [result] = await resultsOf(
      at('2&kind=storm&clients=12&obey=100&span=30s&limits=gcra(limit:1,window:1s,burst:1)'),
    )
    expect(result!.totals.served).toBe(12)
  })

  it('counts a settled call by its real cost', async () => {
    const settled = '2&rate=1&span=10s&cost=5&real=1&takes=100ms&limits=slidingWindow(limit:10,window:10s)'
    const [result] = await resultsOf(at(settled))
    expect([...result!.kept].filter((units) => units === 1).length).toBe(result!.totals.served)
  })
})

describe('the problems of a scenario', () => {
  it.each([
    ['2&limits=gcra(limit:1.5,window:1s)', 'columns.0.policies.0.limit', /limit must be .*got 1\.5/],
    ['2&limits=gcra(limit:1,window:soon)', 'columns.0.policies.0.window', /window must be .*got "soon"/],
    ['2&limits=slidingWindow(limit:1,window:1s,buckets:7)', 'columns.0.policies.0', /buckets/],
    ['2&limits=bucket(limit:1,window:1s)', 'columns.0.policies.0.algorithm', /algorithm must be/],
    ['2&rate=-1&limits=gcra(limit:1,window:1s)', 'settings.rate', /rate must be a number/],
    ['2&rate=100000&span=1d&limits=gcra(limit:1,window:1s)', 'settings.span', /more than 200000/],
    ['2&limits=gcra(limit:1,window:1s)+wait(maxWait:2d)', 'columns.0.wait.maxWait', /maxWait must be/],
    [
      '2&limits=gcra(limit:1,window:1s)+penalty(after:0,block:1s)',
      'columns.0.penalty.after',
      /penalty\.after must be/,
    ],
    ['2&kind=list&text=soon&limits=gcra(limit:1,window:1s)', 'settings.list', /line 1/],
  ])('of %s are those of the library, at %s', (fragment, path, message) => {
    expect(readScenario(at(fragment)).problems[path]).toMatch(message)
  })
})

describe('another time', () => {
  const full = '2&kind=list&text=0%0A24h&limits=gcra(limit:1,window:1s)'
  const fragments = [...PRESETS.map(({ fragment }) => fragment), full]

  it.each(fragments.map((each) => [each]))('of %s is within the traffic, and can be run', (fragment) => {
    const typed = at(fragment)
    const all = shownTime(readScenario(typed).scenario)
    // Later, earlier, in and out, from each that comes of the one before.
    for (const [factor, share] of [[1, 0.5], [2], [0.5], [1, 0.5], [1, 0.5], [1, -0.5], [8]] as const) {
      Object.assign(typed.settings, otherTime(readScenario(typed).scenario, factor, share))
      const { scenario, problems } = readScenario(typed)
      expect(problems).toEqual({})
      const { from, to } = shownTime(scenario)
      expect(from).toBeGreaterThanOrEqual(0)
      expect(to).toBeLessThanOrEqual(all.to)
      expect(to - from).toBeGreaterThanOrEqual(999)
    }
    expect(shownTime(readScenario(typed).scenario)).toEqual(all)
  })

  it('moves by a share of itself, and no further than the end', () => {
    const { scenario } = readScenario(at('2&span=60s&from=10000&to=30000&limits=gcra(limit:1,window:1s)'))
    expect(otherTime(scenario, 1, 0.5)).toEqual({ from: 20_000, to: 40_000 })
    expect(otherTime(scenario, 0.5)).toEqual({ from: 15_000, to: 25_000 })
    expect(otherTime(scenario, 1, 3)).toEqual({ from: 40_000, to: 60_000 })
    expect(otherTime(scenario, 4)).toEqual({ from: 0, to: 60_000 })
  })

  it('may be one after the end in an address, and is then that of the traffic', () => {
    const { scenario, problems } = readScenario(
      at('2&kind=day&span=1d&rate=0.05&from=43200000&to=129600000&limits=gcra(limit:1,window:1s)'),
    )
    expect(problems).toEqual({})
    expect(shownTime(scenario)).toEqual({ from: 43_200_000, to: 86_400_000 })
  })
})

describe('acquire', () => {
  beforeEach(() => void jest.useFakeTimers({ now: START_MS }))
  afterEach(() => void jest.useRealTimers())

  it.each([
    ['2&limits=gcra(limit:10,window:1s,burst:3)+wait(maxWait:2s)'],
    ['2&limits=slidingLog(limit:4,window:1s)+leakyBucket(limit:2,window:1s,capacity:3)+wait(maxWait:3s)'],
  ])('books as limiter.acquire does, and decides the same: %s', async (fragment) => {
    const column = readScenario(at(fragment)).scenario.columns[0]!
    const limits = new Limits(column)
    const store = memoryStore({ clock: () => Date.now() * 1000 })
    const limiter = createLimiter({ name: 'api', policies: column.policies, store })
    const booked: Decision[] = []
    const waited: Promise<Decision>[] = []
    for (const instant of [0, 1, 2, 3, 50, 400, 401, 2500, 2501, 2502, 2503, 2504, 2505]) {
      await jest.advanceTimersByTimeAsync(START_MS + instant - Date.now())
      limits.now = instant
      booked.push(await limits.decide(1, 1))
      waited.push(limiter.acquire('key-1', { maxWait: column.maxWait! }))
    }
    await jest.advanceTimersByTimeAsync(10_000)
    const records = (decisions: readonly Decision[]) => decisions.map((each) => each.toJSON())
    expect(records(booked)).toEqual(records(await Promise.all(waited)))
    expect(booked.some(({ waitMs }) => waitMs > 0)).toBe(true)
    limits.close()
    void store.close()
  })
})

describe('the response to a call', () => {
  it('has the headers that adapters send', async () => {
    const typed = at('2&rate=2&span=2s&limits=fixedWindow(limit:2,window:10s)')
    const [result] = await resultsOf(typed)
    expect([...result!.turn]).toEqual([0, 500, NaN, NaN])
    const answers = await answersAt(readScenario(typed).scenario, 0, 2)
    expect(answers[0]!.status).toBe(429)
    expect(JSON.parse(answers[0]!.body!)).toMatchObject({ status: 429, 'violated-policies': ['api'] })
    const headers = Object.fromEntries(answers.map((each) => [each.format, each.headers]))
    expect(headers['x-ratelimit']).toEqual(
      expect.arrayContaining([
        'X-RateLimit-Limit: 2',
        'X-RateLimit-Remaining: 0',
        `X-RateLimit-Reset: ${START_MS / 1000 + 10}`,
        'Retry-After: 9',
      ]),
    )
    expect(headers['ietf']).toEqual(
      expect.arrayContaining(['RateLimit-Policy: "api";q=2;w=10', 'RateLimit: "api";r=0;t=9']),
    )
  })

  it('of a call that waited is that of its turn', async () => {
    const typed = at('2&rate=10&span=1s&limits=gcra(limit:1,window:1s,burst:1)+wait(maxWait:5s)')
    const [result] = await resultsOf(typed)
    expect([result!.at[1], result!.turn[1]]).toEqual([100, 1000])
    const [answer] = await answersAt(readScenario(typed).scenario, 0, 1)
    expect(answer!.status).toBe(200)
    expect(answer!.headers).toContain(`X-RateLimit-Reset: ${START_MS / 1000 + 2}`)
  })
})

describe('settings that do not matter', () => {
  it('are not read, as their errors would have no field', () => {
    const { scenario, problems } = readScenario(
      at('2&kind=storm&rate=x&takes=never&limits=gcra(limit:1,window:1s)'),
    )
    expect(problems).toEqual({})
    expect(scenario.settings.rate).toBe(10)
  })
})

it('the default can be run', () => {
  expect(readScenario(scenarioAt('').scenario).problems).toEqual({})
})
