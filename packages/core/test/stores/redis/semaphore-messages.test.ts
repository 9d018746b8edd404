import { command, until } from '@sluice/harness/redis'
import { installFakeClock } from '@sluice/testing'
import { createSemaphore } from '../../../src/index.js'
import { redisStore } from '../../../src/stores/redis/index.js'
import { oneRedis } from './one-redis.js'

const { server, client } = oneRedis()
const queued = () => command<number>(server, 'ZCOUNT', 'sluice:4:jobs:semaphore:', '1', '(1099511627776')

it('permits pass on by messages, without the poll every 100 ms, which would find them later', async () => {
  const clock = installFakeClock() // stands still: nothing is polled, and in the store nothing expires
  const semaphores = [1, 2].map(() =>
    createSemaphore({ name: 'jobs', limit: 1, store: redisStore(client, { clock: () => 0 }) }),
  )
  let held = await semaphores[0]!.acquire()
  for (let i = 1; i <= 30; i++) {
    const waiting = semaphores[i % 2]!.acquire()
    await until('the ticket to be queued', async () => (await queued()) === 1)
    await held.release()
    held = await waiting
  }
  await held.release()
  await Promise.all(semaphores.map((semaphore) => semaphore.close()))
  clock.restore()
})
