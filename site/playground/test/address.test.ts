import { randomFrom } from '../../../packages/harness/src/figures/random.js'
import { formatScenario, MOST_CHARACTERS, scenarioAt, tooLong } from '../address.js'
import { packList, unpackList } from '../packed-list.js'
import { parseList } from '../pasted.js'
import { PRESETS } from '../presets.js'
import { readScenario, type Scenario } from '../scenario.js'
import { randomScenario } from './random-scenario.js'

const DEFAULT = scenarioAt('').scenario

function fragmentOf(scenario: Scenario): string {
  const text = formatScenario(scenario)
  expect(tooLong(scenario, text)).toBeUndefined()
  return text
}

function randomTimes(calls: number, within: number): string {
  const random = randomFrom(7)
  return Array.from({ length: calls }, () => Math.floor(random() * within))
    .sort((one, other) => one - other)
    .join('\n')
}

describe('an address', () => {
  it('opens as the scenario that it was made of, in at most 2,000 characters', () => {
    for (let seed = 0; seed < 300; seed++) {
      const scenario = randomScenario(seed)
      const fragment = fragmentOf(scenario)
      expect(fragment.length).toBeLessThanOrEqual(MOST_CHARACTERS)
      expect(readScenario(scenarioAt(`#${fragment}`).scenario)).toEqual(readScenario(scenario))
    }
  })

  it('needs no escapes that would make it longer', () => {
    const { hash } = new URL(`https://sluice.example/#${fragmentOf(randomScenario(3))}`)
    expect(hash).toBe(`#${fragmentOf(randomScenario(3))}`)
  })

  it('keeps names with any sign', () => {
    const columns = [
      { policies: [{ algorithm: 'gcra', limit: 1, window: '1s', name: 'a(b),c;d+e&f=g #%"' }] },
    ]
    const scenario = { ...DEFAULT, columns }
    expect(scenarioAt(fragmentOf(scenario)).scenario.columns).toEqual(columns)
  })

  it('keeps what was typed wrong', () => {
    const scenario = { ...DEFAULT, settings: { kind: 'even', rate: 'many', span: '3 s' } }
    expect(scenarioAt(fragmentOf(scenario)).scenario.settings).toEqual(scenario.settings)
  })

  it('holds 800 pasted calls of a minute beside four limits', () => {
    const scenario = {
      ...DEFAULT,
      settings: { kind: 'list', list: randomTimes(800, 60_000) },
      columns: [...DEFAULT.columns, ...DEFAULT.columns],
    }
    expect(scenarioAt(fragmentOf(scenario)).scenario.settings['list']).toBe(scenario.settings.list)
  })

  it('says that it holds no more than 800 pasted calls, which a file does', () => {
    const scenario = { ...DEFAULT, settings: { kind: 'list', list: randomTimes(801, 60_000) } }
    const text = formatScenario(scenario)
    expect(tooLong(scenario, text)).toBe('801 pasted calls are more than the 800 that an address holds')
    expect(scenarioAt(text).scenario).toEqual(scenario)
  })

  it.each(PRESETS.map(({ id, fragment }) => [id, fragment]))(
    'of the preset %s is written as it is read',
    (_, fragment) => {
      expect(fragmentOf(scenarioAt(fragment).scenario)).toBe(fragment)
    },
  )

  it('says that it would be too long', () => {
    const columns = [
      {
        policies: Array.from({ length: 40 }, () => ({
          algorithm: 'slidingLog',
          limit: 123_456,
          window: '365d',
          name: 'x'.repeat(30),
        })),
      },
    ]
    const scenario = { ...DEFAULT, columns }
    expect(tooLong(scenario, formatScenario(scenario))).toContain('more than 2000')
  })

  it.each([
    ['no version', 'kind=even'],
    ['a newer version', '9&kind=even'],
    ['a version that never was', '0&kind=even'],
    ['no limits', '2&kind=even'],
    ['an unknown name', '2&speed=3&limits=gcra(limit:1,window:1s)'],
    ['a policy that is cut off', '2&limits=gcra(limit:1,wind'],
    ['an option without a value', '2&limits=gcra(limit)'],
    ['a broken escape', '2&kind=%E0%A4%A&limits=gcra(limit:1,window:1s)'],
    ['a damaged list', '2&kind=list&list=!!&limits=gcra(limit:1,window:1s)'],
    ['a list that is cut off', '2&kind=list&list=AAAAB&limits=gcra(limit:1,window:1s)'],
    ['a list after its end', '2&kind=list&list=AAAAAAAAAAA!&limits=gcra(limit:1,window:1s)'],
    [
      'two lists',
      `2&kind=list${`&list=${packList([{ at: 1, cost: 1, key: 1 }])}`.repeat(2)}&limits=gcra(limit:1,window:1s)`,
    ],
    ['five columns', `2${'&limits=gcra(limit:1,window:1s)'.repeat(5)}`],
  ])('that is broken, with %s, opens the default and says why', (_, fragment) => {
    expect(scenarioAt(fragment)).toEqual({ scenario: DEFAULT, problem: expect.stringMatching(/\w/) })
  })

  it('of every version that was written still opens as it was meant', () => {
    // One address of each version, kept for ever.
    const written = [
      '1&kind=poisson&rate=4&span=30s&from=0&to=9000&key=1&limits=gcra(limit:20,window:10s,burst:5)+slidingLog(limit:3,window:1s);maxWait:5s&limits=gcra(limit:2,window:1s);penalty(after:3,block:10s)',
      '2&kind=poisson&rate=4&span=30s&from=0&to=9000&key=1&limits=gcra(limit:20,window:10s,burst:5)+slidingLog(limit:3,window:1s)+wait(maxWait:5s)&limits=gcra(limit:2,window:1s)+penalty(after:3,block:10s)',
    ]
    const newest = scenarioAt(written.at(-1)!).scenario
    expect(formatScenario(newest)).toBe(written.at(-1))
    for (const fragment of written) expect(scenarioAt(fragment)).toEqual({ scenario: newest })
  })

  it('keeps limits of which every option was emptied', () => {
    const columns = [{ policies: [{ algorithm: 'gcra' }], penalty: {} }]
    expect(scenarioAt(fragmentOf({ ...DEFAULT, columns })).scenario.columns).toEqual(columns)
  })
})

/**
 * The characters that a function looks at through patterns and searches, and those that it copies: a measure of work that no machine
 * changes.
 */
function charactersReadBy(read: () => unknown): number {
  let count = 0
  const { exec } = RegExp.prototype
  jest.spyOn(RegExp.prototype, 'exec').mockImplementation(function (this: RegExp, text: string) {
    const from = this.global || this.sticky ? this.lastIndex : 0
    const found = exec.call(this, text)
    const end = found ? found.index + found[0].length : this.sticky ? from + 1 : text.length
    count += end - from
    return found
  })
  for (const name of [
    'indexOf',
    'slice',
    'substring',
    'padStart',
    'repeat',
    'trim',
    'split',
    'replaceAll',
  ] as const) {
    const own = String.prototype[name] as (...args: unknown[]) => unknown
    jest.spyOn(String.prototype, name).mockImplementation(function (this: string, ...args: unknown[]) {
      const result = own.apply(this, args)
      count +=
        typeof result === 'string'
          ? result.length
          : name === 'indexOf' && Number(result) >= 0
            ? Number(result) - Number(args[1] ?? 0) + 1
            : this.length
      return result as never
    })
  }
  try {
    read()
    return count
  } finally {
    jest.restoreAllMocks()
  }
}

describe('a packed list', () => {
  it('is read in a time that grows as its length does', () => {
    const scenarioOf = (calls: number) => {
      const list = parseList(randomTimes(calls, 86_400_000))
      return `2&kind=list&list=${packList(list)}&limits=gcra(limit:1,window:1s)`
    }
    const works = [1000, 2000, 4000].map((calls) => {
      const text = scenarioOf(calls)
      const work = charactersReadBy(() => {
        const { scenario, problem } = scenarioAt(text)
        expect(problem).toBeUndefined()
        expect(readScenario(scenario).problems).toEqual({})
      })
      return work / text.length
    })
    // For each character of the link: its place among the digits, and the list as it is pasted and read again.
    expect(Math.max(...works)).toBeLessThan(100)
    expect(works[2]! / works[0]!).toBeLessThan(1.1)
  })

  it('is unpacked as it was', () => {
    const random = randomFrom(1)
    for (let run = 0; run < 200; run++) {
      let at = 0
      const calls = Array.from({ length: 1 + Math.floor(random() * 50) }, () => ({
        at: (at += Math.floor(random() ** 6 * 1_000_000)),
        cost: random() < 0.7 ? 1 : Math.floor(random() * 2 ** 31),
        key: 1 + Math.floor(random() * 3),
      }))
      expect(unpackList(packList(calls))).toEqual(calls)
    }
  })

  it('of even calls has a length of its own, however many they are', () => {
    const calls = Array.from({ length: 800 }, (_, i) => ({ at: 100 + 100 * i, cost: 1, key: 1 }))
    expect(packList(calls).length).toBeLessThan(40)
    expect(unpackList(packList(calls))).toEqual(calls)
  })
})

describe('a pasted list', () => {
  it('takes milliseconds, units and instants, costs and keys', () => {
    expect(parseList('1.5s 2\n250\n\n2m, 3, 2')).toEqual([
      { at: 250, cost: 1, key: 1 },
      { at: 1500, cost: 2, key: 1 },
      { at: 120_000, cost: 3, key: 2 },
    ])
    expect(parseList('2026-05-01T10:00:00Z').map(({ at }) => at)).toEqual([36_000_000])
  })

  it.each([['soon'], ['-5'], ['1 x'], ['1 1 0'], ['1 1 1 1'], ['25h'], ['']])('refuses %j', (text) => {
    expect(() => parseList(text)).toThrow(TypeError)
  })
})
