import { type RedisServer, startRedis } from '@sluice/harness/redis'
import { spawnSync } from 'node:child_process'
import { interrupt, nextLine, pathOf, type Program, start } from './program.js'

let redis: RedisServer
let workers: readonly Program[] = []

beforeAll(async () => {
  redis = await startRedis()
})

afterEach(() => {
  for (const { child } of workers) child.kill('SIGKILL')
})

afterAll(() => redis.stop())

/** Workers of one account, one for each demand in calls a second; 0 waits for its turns. */
function startFleet(account: string, demands: readonly number[], callsPerMinute: number): void {
  workers = demands.map((demand) =>
    start('fleet/worker', {
      REDIS_URL: `redis://${redis.host}:${redis.port}`,
      ACCOUNT: account,
      CALLS_PER_MINUTE: String(callsPerMinute),
      CALLS_PER_SECOND: String(demand),
    }),
  )
}

test('four workers that ask for different rates get one limit together, each a part, and end by themselves on SIGINT', async () => {
  startFleet('acme', [10, 20, 30, 40], 300)
  const results = await Promise.all(
    workers.map(async (worker) => {
      const own = []
      while (own.at(-1) !== 'denied') own.push(await nextLine(worker))
      return own
    }),
  )
  const shares = results.map((own) => own.filter((result) => result === 'allowed').length)
  expect(shares.reduce((sum, share) => sum + share)).toBe(300)
  expect(Math.min(...shares)).toBeGreaterThan(0)
  expect(await Promise.all(workers.map(interrupt))).toEqual([0, 0, 0, 0])
}, 30_000)

test('workers that wait for their turns are denied nothing, and share the turns', async () => {
  const began = Date.now()
  startFleet('turns', [0, 0, 0], 600)
  const results = await Promise.all(
    workers.map(async (worker) => [await nextLine(worker), await nextLine(worker), await nextLine(worker)]),
  )
  // A turn each 100 ms, the first at once.
  expect(Date.now() - began).toBeGreaterThanOrEqual(800)
  expect(results.flat()).toEqual(Array(9).fill('allowed'))
  expect(await Promise.all(workers.map(interrupt))).toEqual([0, 0, 0])
}, 30_000)

test('a worker that cannot reach its Redis says so without the password, and ends', () => {
  const env = { ...process.env, REDIS_URL: 'redis://:secret@127.0.0.1:1' }
  const { status, stderr } = spawnSync(process.execPath, [pathOf('fleet/worker')], { encoding: 'utf8', env })
  expect(status).toBe(1)
  expect(stderr).toContain('ECONNREFUSED')
  expect(stderr).not.toContain('secret')
}, 30_000)
