import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'

const MAIN = join(__dirname, '../dist/main.js')

let child: ChildProcess | undefined

afterEach(() => {
  child?.kill('SIGKILL')
})

test('sends traffic, refuses what is beyond the limits, and finds that every limit held', async () => {
  const run = start('--seconds', '2')
  expect(await run.exitCode).toBe(0)
  const callers = [...run.output().matchAll(/^ {2}(\S+) +(\d+) +(\d+) +(\d+) +(\d+) {2}(\S)$/gm)]
  const rows = callers.map(
    ([, name, ...cells]) => [name, ...cells.slice(0, 4).map(Number), cells[4]] as const,
  )
  expect(rows.map(([name]) => name)).toEqual(
    expect.arrayContaining(['127.0.0.1', 'alice', 'bob', 'carol', 'acme', 'globex', 'eve']),
  )
  for (const [, sent, allowed, refused, permitted, mark] of rows) {
    expect(sent).toBe(Number(allowed) + Number(refused))
    expect(allowed).toBeLessThanOrEqual(Number(permitted))
    expect(allowed).toBeGreaterThan(0)
    expect(mark).toBe('✓')
  }
  expect(rows.find(([name]) => name === 'carol')).toMatchObject(['carol', 8, 8, 0, expect.any(Number), '✓'])
  expect(rows.filter(([, , , refused]) => Number(refused) > 0).length).toBeGreaterThanOrEqual(5)
  expect(run.output()).toContain('Every limit held')
}, 30_000)

test('ends with the summary so far when it is stopped', async () => {
  const run = start()
  await run.printed(/^ +\d+\.\d /m)
  child?.kill('SIGINT')
  expect(await run.exitCode).toBe(0)
  expect(run.output()).toContain('Every limit held')
}, 30_000)

test('serves with the headers of every limit until it is stopped', async () => {
  const run = start('--serve')
  const [, origin] = await run.printed(/Serving on (http:\S+)/)
  const fromPublic = await fetch(`${origin}/public`)
  expect(fromPublic.status).toBe(200)
  expect(fromPublic.headers.get('x-ratelimit-limit')).toBe('20')
  expect(fromPublic.headers.get('x-ratelimit-remaining')).toBe('19')
  const fromSearch = await fetch(`${origin}/search`, { headers: { 'x-api-key': 'key' } })
  expect(fromSearch.headers.get('ratelimit-policy')).toBe('"search";q=10;w=1')
  const tooMany = await fetch(`${origin}/export?rows=101`, {
    method: 'POST',
    headers: { 'x-api-key': 'key' },
  })
  expect(tooMany.status).toBe(429)
  child?.kill('SIGINT')
  expect(await run.exitCode).toBe(0)
  expect(run.errors()).toBe('')
}, 30_000)

test.each([
  [['--nonsense'], "Unknown option '--nonsense'"],
  [['extra'], "Unexpected argument 'extra'"],
  [['--seconds', '0'], "--seconds must be a whole number from 1 to 3600, got '0'"],
  [['--port', '80a'], "--port must be a whole number from 0 to 65535, got '80a'"],
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
  printed(pattern: RegExp): Promise<RegExpExecArray>
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
