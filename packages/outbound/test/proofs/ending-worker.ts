import { createLimiter, createSemaphore, gcra, memoryStore } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { limitFetch } from '../../src/index.js'

/** What a process is in the middle of when it closes its limiter, its semaphore and its store. */
export type Moment = 'nothing' | 'waiting' | 'pausing' | 'an outage'

/*
 * Lets go of everything and ends by itself: `node ending.cjs <moment> [<where Redis is>]`. Prints the milliseconds from
 * close() to its end. Every call holds a permit, waits for a permit, or waits for a turn.
 */
async function end(moment: Moment, redis: object | undefined): Promise<void> {
  const store = redis ? redisStore(redis) : memoryStore()
  const limiter = createLimiter({
    name: 'ending',
    store,
    policies: [gcra({ limit: 1, window: '1h', burst: 3 })],
  })
  const semaphore = createSemaphore({ name: 'ending', store, limit: 2 })
  const other = async (): Promise<Response> =>
    moment === 'pausing'
      ? new Response('no', { status: 429, headers: { 'Retry-After': '60' } })
      : new Response('ok')
  const limited = limitFetch(other, { limiter, semaphore, maxWait: '1d' })
  const call = () =>
    void limited('http://other.example/')
      .then((response) => response.text())
      .catch(() => {})
  if (moment !== 'nothing') for (let i = 0; i < 20; i++) call()
  await new Promise((resolve) => setTimeout(resolve, 300))
  process.stdout.write('ready')
  await new Promise((resolve) => process.stdin.once('data', resolve))
  process.stdin.destroy()
  if (moment === 'an outage') {
    for (let ms = 0; ms < 500; ms += 10) {
      call()
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
  }
  const closed = performance.now()
  process.on('exit', () => console.log(performance.now() - closed))
  await Promise.all([limiter.close(), semaphore.close()])
  await store.close()
}

void end(process.argv[2] as Moment, process.argv[3] ? JSON.parse(process.argv[3]) : undefined)
