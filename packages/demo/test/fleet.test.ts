import { dirname } from 'node:path'
import { type Program, start } from './program.js'

let run: Program | undefined

afterEach(() => {
  run?.child.kill('SIGTERM')
})

test('four processes get 600 calls together, and not one more', async () => {
  run = start(['fleet', '--seconds', '8'])
  expect(await run.exitCode).toBe(0)
  const [, allowed, asked, right] = /held: (\d+) of (\d+) calls were allowed; right is exactly (\d+)\./
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
  run = start(['fleet', '--even', '--seconds', '8'])
  expect(await run.exitCode).toBe(0)
  expect(run.output()).toMatch(/The limit held: (\d+) of \1 calls were allowed; right is \d+ to \d+ in/)
}, 60_000)

test('ends with the check so far when it is stopped, and leaves no process behind', async () => {
  run = start(['fleet'])
  const [, port] = await run.printed(/on port (\d+)[^]* [1-9]\d*\.\d s/)
  run?.child.kill('SIGINT')
  expect(await run.exitCode).toBe(0)
  expect(run.output()).toMatch(/The limit held: (\d+) of \1 calls were allowed; right is exactly \1\./)
  expect(run.errors()).toBe('')
  await expect(fetch(`http://127.0.0.1:${port}`)).rejects.toThrow('fetch failed')
}, 60_000)

test('says what is missing where there is no Redis', async () => {
  run = start(['fleet'], { PATH: dirname(__dirname) })
  expect(await run.exitCode).toBe(1)
  expect(run.errors()).toBe(
    'There is no redis-server or valkey-server in PATH. Install one, or set REDIS_URL.\n',
  )
}, 60_000)

test('says that it cannot reach the Redis of REDIS_URL, without showing the password', async () => {
  run = start(['fleet'], { REDIS_URL: 'redis://:secret@127.0.0.1:1' })
  expect(await run.exitCode).toBe(1)
  expect(run.errors()).toBe('Cannot reach the Redis of REDIS_URL: connect ECONNREFUSED 127.0.0.1:1\n')
}, 60_000)

test.each([
  [['--nonsense'], "Unknown option '--nonsense'"],
  [['--seconds', '51'], "--seconds must be a whole number from 1 to 50, got '51'"],
])(
  'explains %j and exits with 2',
  async (args, message) => {
    run = start(['fleet', ...args])
    expect(await run.exitCode).toBe(2)
    expect(run.errors()).toContain(message)
    expect(run.errors()).toContain('Usage: npm run demo -- fleet')
  },
  60_000,
)
