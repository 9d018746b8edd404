import { createLimiter, createSemaphore, slidingLog } from '@sluice/core'
import { createQueue } from '../../src/index.js'
import { evenly, limiterOf, open, outcome, pass, useFakeTime } from './open-queue.js'

useFakeTime()

const HOUR = 60 * 60 * 1000

describe('a queue without maxWait and maxQueue', () => {
  it('lets calls wait for as long as it takes: a turn that is too far away to be booked is asked for again', async () => {
    const limiter = limiterOf(slidingLog({ limit: 1, window: '1h' }))
    const acquire = limiter.acquire.bind(limiter)
    const asked: unknown[] = []
    // As if it were days, which would take a fake clock minutes.
    limiter.acquire = (key, options) =>
      acquire(key, { ...options, maxWait: asked.push(options!.maxWait) && 0 })
    const { add, at } = open({ limiter })
    for (const name of 'abc') add(name)
    await pass(2.5 * HOUR)
    expect(at()).toEqual([0, HOUR, 2 * HOUR])
    expect(new Set(asked)).toEqual(new Set([24 * HOUR]))
    expect(asked).toHaveLength(5)
  })

  it('books one turn ahead in the store, and holds no permit for a turn that is days away', async () => {
    const limiter = limiterOf(slidingLog({ limit: 1, window: '3d' }))
    const semaphore = createSemaphore({ limit: 1 })
    const { add } = open({ limiter, semaphore })
    for (const name of 'abc') add(name)
    await pass(1000)
    expect((await limiter.peek('default')).retryAfterMs).toBe(72 * HOUR - 1000)
    expect((await semaphore.acquire('default', { maxWait: 0 })).allowed).toBe(true)
  })

  it('keeps any number of calls', () => {
    const { queue } = open()
    queue.pause()
    for (let i = 0; i <= 10_000; i++) outcome(queue.run(() => i))
    expect(queue.size).toBe(10_001)
  })

  it('refuses a call whose turn never comes', async () => {
    const limiter = limiterOf(evenly())
    const { add } = open({ limiter })
    const large = add('large', { cost: 2 })
    await limiter.block('ann', '1h')
    const blocked = add('blocked', { key: 'ann' })
    const suspended = outcome(
      createQueue({ limiter: createLimiter({ policies: [slidingLog({ limit: 0, window: '1s' })] }) }).run(
        () => 1,
      ),
    )
    await pass(0)
    expect([large, blocked, suspended].map(({ error }) => error?.reason)).toEqual([
      'cost',
      'blocked',
      'limit',
    ])
  })

  it('has those bounds where they are given', async () => {
    const { add } = open({ limiter: limiterOf(evenly(1)), maxWait: 500, maxQueue: 1 })
    add('a')
    await pass(0)
    const [late, many] = ['b', 'c'].map((name) => add(name))
    await pass(500)
    expect([late!.error.reason, many!.error.reason]).toEqual(['limit', 'queue'])
  })
})
