import { type Program, start } from './program.js'

let run: Program | undefined

afterEach(() => {
  run?.child.kill('SIGTERM') // SIGKILL would leave its Redis behind
})

test.each([
  ['in one process', []],
  ['in a process each, with Redis', ['--redis']],
])(
  'makes every payment once, under the limits of the provider (%s)',
  async (_, args) => {
    run = start(['payments', '--payments', '40', ...args])
    expect(await run.exitCode).toBe(0)
    expect(run.errors()).toBe('')
    expect(run.output()).toContain('✓ 40 of 40 payments of the batch were made')
    expect(run.output()).toContain('✓ 0 payments were made twice')
    expect(run.output()).toContain('✓ 0 payments failed')
    const [, atOnce, broken] = /at most (\d+) calls at once[^]* (\d+) x 503/.exec(run.output())!
    expect(Number(atOnce)).toBeLessThanOrEqual(5)
    expect(Number(broken)).toBeGreaterThan(0)
    expect(Number(broken)).toBeLessThan(20) // the pause was obeyed
  },
  60_000,
)

test.each([
  ['in one process', []],
  ['in a process each, with Redis', ['--redis']],
])(
  'ends with the summary so far when it is stopped (%s)',
  async (_, args) => {
    run = start(['payments', '--payments', '5000', ...args])
    await run.printed(/ [1-9]\d*\/5000 paid/)
    run?.child.kill('SIGINT')
    expect(await run.exitCode).toBe(1)
    expect(run.errors()).toBe('')
    expect(run.output()).toContain('Stopped early, before every payment was made.')
    expect(run.output()).toContain('✓ 0 payments were made twice')
  },
  60_000,
)

test.each([
  [['--nonsense'], "Unknown option '--nonsense'"],
  [['extra'], "Unexpected argument 'extra'"],
  [['--payments', '3'], "--payments must be a whole number from 4 to 100000, got '3'"],
])(
  'explains %j and exits with 2',
  async (args, message) => {
    run = start(['payments', ...args])
    expect(await run.exitCode).toBe(2)
    expect(run.errors()).toContain(message)
    expect(run.errors()).toContain('Usage: npm run demo -- payments')
  },
  30_000,
)
