import { createLimiter, slidingLog } from '@sluice/core'
import { type RedisServer, startRedis, until } from '@sluice/harness/redis'
import { Queue, Worker } from 'bullmq'
import { perGroup } from '../../recipes/bullmq.js'

describe('the recipe for BullMQ', () => {
  let redis: RedisServer
  beforeAll(async () => {
    redis = await startRedis()
  })
  afterAll(() => redis.stop())

  it('delays the jobs of a group over its limit until their turn, without an attempt, and no other group', async () => {
    const connection = { host: redis.host, port: redis.port }
    const limiter = createLimiter({ policies: [slidingLog({ limit: 2, window: '1h' })] })
    const done: string[] = []
    const send = async ({ data }: { data: { group: string; n: number } }) =>
      void done.push(`${data.group}${data.n}`)
    const queue = new Queue<{ group: string; n: number }>('mails', { connection })
    const jobs = [1, 2, 3, 4].map((n) => ({ name: 'mail', data: { group: 'a', n } }))
    await queue.addBulk([...jobs, { name: 'mail', data: { group: 'b', n: 1 } }])
    const began = Date.now()
    const worker = new Worker('mails', perGroup(limiter, send), { connection })
    try {
      await until(
        'the jobs are done or delayed',
        async () => (await queue.getDelayedCount()) === 2 && done.length === 3,
      )
      expect(done).toEqual(['a1', 'a2', 'b1'])
      const delayed = await queue.getDelayed()
      expect(new Set(delayed.map(({ data }) => data.n))).toEqual(new Set([3, 4]))
      for (const { delay, attemptsMade } of delayed) {
        expect(attemptsMade).toBe(0)
        expect(delay).toBeLessThanOrEqual(3_600_000)
        expect(delay + Date.now() - began).toBeGreaterThanOrEqual(3_590_000)
      }
    } finally {
      await worker.close()
      await queue.close()
    }
  }, 60_000)
})
