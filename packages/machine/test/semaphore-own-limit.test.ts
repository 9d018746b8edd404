import { type RedisServer, startRedis } from '@sluice/harness/redis'
import { createSemaphore, memoryStore, type Semaphore, type Store } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { Meeting } from './meeting.js'

const meeting = new Meeting()
let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
})
afterAll(async () => {
  await meeting.end()
  await server.stop()
})

/** Permits taken and given back by each of `calls`, `rounds` times. Returns the most that were held at once. */
async function mostHeld(semaphore: Semaphore, calls: number, rounds = 10): Promise<number> {
  let most = 0
  const loop = async () => {
    for (let i = 0; i < rounds; i++) {
      await using permit = await semaphore.acquire()
      expect(permit.allowed).toBe(true)
      most = Math.max(most, semaphore.inUse)
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  await Promise.all(Array.from({ length: calls }, loop))
  return most
}

it.each<[string, () => Store]>([
  ['in memory', () => memoryStore()],
  ['of a machine', () => meeting.open({ serve: true })],
  ['in Redis', () => redisStore({ host: server.host, port: server.port })],
])('a semaphore %s holds no more than its own limit beside a wider one of its name', async (_, open) => {
  const store = open()
  const [one, other] = [1, 2].map(() => createSemaphore({ name: 'jobs', limit: 3, deadline: '5s', store }))
  one!.resize(1)
  const [most] = await Promise.all([mostHeld(one!, 4), mostHeld(other!, 2)])
  expect(most).toBe(1)
  await store.close()
})
