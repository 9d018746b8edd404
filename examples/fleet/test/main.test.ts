import { type ChildProcess, spawn } from 'node:child_process'
import { dirname, join } from 'node:path'

const MAIN = join(__dirname, '../dist/main.js')

let child: ChildProcess | undefined

afterEach(() => {
  child?.kill('SIGTERM')
})

test('four processes get 600 calls together, and not one more', async () => {
  const run = start(['--seconds', '8'])
  expect(await run.exitCode).toBe(0)
  const [, allowed, right, asked] = /held: (\d+) calls were allowed, right is exactly (\d+) of (\d+)\./
    .exec(run.output())!
    .map(Number)
  expect([allowed, right]).toEqual([600, 600])
  expect(asked).toBeGreaterThan(600)
  const last = run
    .output()
    .match(/^ +[\d.]+ s (.*)$/gm)!
    .at(-1)!
  const shares = [...last.matchAll(/(\d+)\/\d+/g)].map(([, calls]) => Number(calls))
  expect(shares).toHaveLength(4)
  expect(Math.min(...shares)).toBeGreaterThan(0)
  expect(shares.reduce((sum, share) => sum + share)).toBe(600)
}, 60_000)

test('takes turns evenly with --even', async () => {
  const run = start(['--even', '--seconds', '2'])
  expect(await run.exitCode).toBe(0)
  expect(run.output()).toMatch(/The limit held: \d+ calls were allowed, right is \d+ to \d+ in/)
}, 60_000)

test('ends with the check so far when it is stopped, and leaves no process behind', async () => {
  const run = start([])
  const [, port] = await run.printed(/on port (\d+)[^]* 1\.\d s/)
  child?.kill('SIGINT')
  expect(await run.exitCode).toBe(0)
  expect(run.output()).toMatch(/The limit held: (\d+) calls were allowed, right is exactly \1 of \1\./)
  expect(run.errors()).toBe('')
  await expect(fetch(`http://127.0.0.1:${port}`)).rejects.toThrow('fetch failed')
}, 60_000)

test('says what is missing where there is no Redis', async () => {
  const run = start([], { PATH: dirname(__dirname), REDIS_URL: undefined })
  expect(await run.exitCode).toBe(1)
  expect(run.errors()).toBe(
    'There is no redis-server or valkey-server in PATH. Install one, or set REDIS_URL.\n',
  )
}, 60_000)

test('says that it cannot reach the Redis of REDIS_URL, without showing the password', async () => {
  const run = start([], { REDIS_URL: 'redis://:secret@127.0.0.1:1' })
  expect(await run.exitCode).toBe(1)
  expect(run.errors()).toBe('Cannot reach the Redis of REDIS_URL: connect ECONNREFUSED 127.0.0.1:1\n')
}, 60_000)

test.each([
  [['--nonsense'], "Unknown option '--nonsense'"],
  [['--seconds', '51'], "--seconds must be a whole number from 1 to 50, got '51'"],
])(
  'explains %j and exits with 2',
  async (args, message) => {
    const run = start(args)
    expect(await run.exitCode).toBe(2)
    expect(run.errors()).toContain(message)
    expect(run.errors()).toContain('Usage:')
  },
  60_000,
)

interface Run {
  readonly exitCode: Promise<number | null>
  output(): string
  errors(): string
  /** Resolves as soon as the output matches. */
  printed(pattern: RegExp): Promise<RegExpExecArray>
}

function start(args: readonly string[], env: NodeJS.ProcessEnv = { REDIS_URL: undefined }): Run {
  const { stdout, stderr } = (child = spawn(process.execPath, [MAIN, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, NO_COLOR: '1', ...env },
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
        const look = (): void => {
          const match = pattern.exec(output)
          if (match) resolve(match)
        }
        stdout?.on('data', look)
        void exitCode.then(() => reject(new Error(`ended without printing ${pattern}: ${output}${errors}`)))
      })
    },
  }
}
