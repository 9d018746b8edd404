import { execFile } from 'node:child_process'

interface Run {
  readonly status: number
  readonly stderr: string
  readonly success: boolean
  readonly testResults: readonly {
    readonly message: string
    readonly status: string
    readonly assertionResults: readonly {
      readonly fullName: string
      readonly title: string
      readonly status: string
      readonly failureMessages: readonly string[]
    }[]
  }[]
}

jest.setTimeout(60_000)

describe('a test that writes what it does not expect', () => {
  let results: Run['testResults'][number]['assertionResults']
  beforeAll(async () => {
    results = (await jestOn('loud')).testResults[0]!.assertionResults
  })

  it('fails, and no other does', () => {
    const as = (status: string) =>
      results.filter((each) => each.status === status).map(({ fullName }) => fullName)
    expect(as('failed').filter((name) => !name.startsWith('fails: '))).toEqual([])
    expect(as('passed').filter((name) => !name.startsWith('passes: '))).toEqual([])
    expect([as('failed').length, as('passed').length]).toEqual([11, 4])
  })

  it.each([
    ['a SluiceWarning', 'a warning that no test expects: SluiceWarning [UNEXPECTED] a text'],
    ['a SluiceWarning beside one that is expected', 'SluiceWarning [ANOTHER] a text'],
    ['a SluiceWarning that the test before expected', 'SluiceWarning [EXPECTED] a text'],
    ['a SluiceWarning after the test', 'SluiceWarning [OF_A_HOOK] a text'],
    ['an expected SluiceWarning that does not come', 'no warning was written with the code MISSING'],
    ['a warning of Node', 'a warning that no list has: ExperimentalWarning a feature'],
    ['a warning of another library', 'a warning that no list has: DeprecationWarning [LIB001] old'],
    ['a line of the console', 'console.log in a test: a line'],
    ['what is written to stderr', 'a test wrote to stderr: written'],
    ['a warning of a child that inherits stderr', '[OF_A_PROGRAM] SluiceWarning: of a program'],
    ['a warning of a worker thread', '[OF_A_PROGRAM] SluiceWarning: of a program'],
  ])('is named with what it wrote: %s', (title, text) => {
    const { failureMessages } = results.find((each) => each.title === title)!
    expect(failureMessages.length).toBe(1)
    expect(failureMessages[0]).toContain(text)
  })
})

it('a file fails that writes a warning after its tests', async () => {
  const { status, testResults } = await jestOn('late')
  expect(status).toBe(1)
  expect(testResults[0]!.message).toContain('SluiceWarning [OF_THE_FILE] a text')
})

it('a file fails that leaves something open, and names it', async () => {
  const { status, testResults } = await jestOn('open')
  expect(status).toBe(1)
  expect(testResults[0]!.message).toContain('the file has ended and left open: TCPServerWrap')
})

it('a run fails in which a worker of Jest writes past its streams, and ends with what was written', async () => {
  const { status, stderr, testResults } = await jestOn('past-streams')
  expect(testResults[0]!.assertionResults.map((each) => each.status)).toEqual(['passed'])
  expect(status).toBe(1)
  expect(stderr).toMatch(
    /\nRan all test suites\.\n[^]*The run fails: output beside results: [^]*past the streams\n+$/,
  )
})

it('a run passes in which a known warning comes after the last file of a worker', async () => {
  const { status, stderr, testResults } = await jestOn('swept*')
  expect(testResults.map((each) => each.status)).toEqual(['passed', 'passed'])
  expect(stderr).not.toContain('JEST-01')
  expect(status).toBe(0)
})

it('a run is quiet and passes whose tests expect what they write', async () => {
  const { status, stderr } = await jestOn('loud', '-t', '^passes:')
  expect(status).toBe(0)
  expect(stderr).not.toMatch(/Warning|console|a line/)
})

/** Runs Jest in a child of its own, with a worker as in `npm test`, on a file that is no test of this repository. */
function jestOn(fixture: string, ...args: readonly string[]): Promise<Run> {
  const all = [
    'node_modules/jest/bin/jest.js',
    '--json',
    '--verbose=false',
    '--workerIdleMemoryLimit=4GB',
    '--maxWorkers=2',
  ]
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [...all, '--testMatch', `**/environments/quiet/${fixture}.fixture.ts`, ...args],
      (error, stdout, stderr) =>
        resolve({
          status: error ? Number(error.code) : 0,
          stderr,
          ...(JSON.parse(stdout) as Omit<Run, 'status' | 'stderr'>),
        }),
    )
  })
}
