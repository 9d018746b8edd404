import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'

const MAIN = join(__dirname, '../dist/main.js')

let child: ChildProcess | undefined

afterEach(() => {
  child?.kill('SIGTERM') // SIGKILL would leave its Redis behind
})

test.each([
  ['in one process', []],
  ['in a process each, with Redis', ['--redis']],
])(
  'makes every payment once, under the limits of the provider (%s)',
  async (_, args) => {
    const run = start('--payments', '40', ...args)
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
    const run = start('--payments', '5000', ...args)
    await run.printed(/^[1-9]\d*\/5000 paid/m)
    child?.kill('SIGINT')
    expect(await run.exitCode).toBe(1)
    expect(run.errors()).toBe('')
    expect(run.output()).toContain('Stopped early.')
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
    const run = start(...args)
    expect(await run.exitCode).toBe(2)
    expect(run.errors()).toContain(message)
    expect(run.errors()).toContain('Usage:')
  },
  30_000,
)

interface Run {
  readonly exitCode: Promise<number | null>
  output(): string
  errors(): string
  /** Resolves as soon as the output matches. */
  printed(pattern: RegExp): Promise<void>
}

function start(...args: string[]): Run {
  const { stdout, stderr } = (child = spawn(process.execPath, [MAIN, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, NO_COLOR: '1' },
  }))
  let output = ''
  let errors = ''
  stdout?.setEncoding('utf8').on('data', (text: string) => (output += text))
  stderr?.setEncoding('utf8').on('data', (text: string) => (errors += text))
  const exitCode = new Promise<number | null>((resolve) => child?.once('close', resolve))
  return {
    exitCode,
    output: () => output,
    errors: () => errors,
    printed(pattern) {
      return new Promise((resolve, reject) => {
        stdout?.on('data', () => pattern.test(output) && resolve())
        void exitCode.then(() => reject(new Error(`ended without printing ${pattern}: ${output}${errors}`)))
      })
    },
  }
}
