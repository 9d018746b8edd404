import { type Program, start } from './program.js'

let run: Program | undefined

afterEach(() => {
  run?.child.kill('SIGKILL')
})

test('sends traffic, denies what is beyond the limits, and finds that every limit held', async () => {
  run = start(['--seconds', '2'])
  expect(await run.exitCode).toBe(0)
  const callers = [...run.output().matchAll(/^ {2}(\S+) +(\d+) +(\d+) +(\d+) +(\d+) {2}(\S)$/gm)]
  const rows = callers.map(
    ([, name, ...cells]) => [name, ...cells.slice(0, 4).map(Number), cells[4]] as const,
  )
  expect(rows.map(([name]) => name)).toEqual(
    expect.arrayContaining(['127.0.0.1', 'alice', 'bob', 'carol', 'acme', 'globex', 'eve']),
  )
  for (const [, sent, allowed, denied, permitted, mark] of rows) {
    expect(sent).toBe(Number(allowed) + Number(denied))
    expect(allowed).toBeLessThanOrEqual(Number(permitted))
    expect(allowed).toBeGreaterThan(0)
    expect(mark).toBe('✓')
  }
  expect(rows.find(([name]) => name === 'carol')).toMatchObject(['carol', 8, 8, 0, expect.any(Number), '✓'])
  expect(rows.filter(([, , , denied]) => Number(denied) > 0).length).toBeGreaterThanOrEqual(5)
  expect(run.output()).toContain('Every limit held')
}, 30_000)

test('ends with the summary so far when it is stopped', async () => {
  run = start([])
  await run.printed(/^ +\d+\.\d /m)
  run?.child.kill('SIGINT')
  expect(await run.exitCode).toBe(0)
  expect(run.output()).toContain('Every limit held')
}, 30_000)

test('serves with the headers of every limit until it is stopped', async () => {
  run = start(['--serve'])
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
  run?.child.kill('SIGINT')
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
    run = start(args)
    expect(await run.exitCode).toBe(2)
    expect(run.errors()).toContain(message)
    expect(run.errors()).toContain('Usage: npm start')
  },
  30_000,
)

test('explains its options', async () => {
  run = start(['--help'])
  expect(await run.exitCode).toBe(0)
  expect(run.output()).toMatch(/^Usage: npm start .*\n[^]*--help/)
}, 30_000)
