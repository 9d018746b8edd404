import { type RedisServer, startRedis } from '@sluice/harness/redis'
import { interrupt, nextLine, type Program, start } from './program.js'

let redis: RedisServer
let workers: readonly Program[] = []

beforeAll(async () => {
  redis = await startRedis()
})

afterAll(async () => {
  for (const { child } of workers) child.kill('SIGKILL')
  await redis.stop()
})

test('workers that are started by hand share one limit, and end by themselves on SIGINT', async () => {
  const env = { REDIS_URL: `redis://${redis.host}:${redis.port}`, CALLS_PER_MINUTE: '5' }
  workers = [start('fleet/worker', env), start('fleet/worker', env)]
  const results = await Promise.all(
    workers.map(async (worker) => {
      const own = []
      while (own.at(-1) !== 'denied') own.push(await nextLine(worker))
      return own
    }),
  )
  expect(results.flat().filter((result) => result === 'allowed')).toHaveLength(5)
  expect(await Promise.all(workers.map(interrupt))).toEqual([0, 0])
}, 30_000)
