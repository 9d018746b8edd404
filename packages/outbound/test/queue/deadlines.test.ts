import { createSemaphore, gcra } from '@sluice/core'
import { evenly, limiterOf, open, pass, useFakeTime } from './open-queue.js'

useFakeTime()

describe('maxWait of a call', () => {
  it('is kept when it inherits the turn of a call that waits longer, and the turn passes on', async () => {
    const { add, at, names } = open({ limiter: limiterOf(evenly(1)) })
    const controller = new AbortController()
    add('first')
    add('A', { maxWait: '30s', signal: controller.signal })
    const heir = add('B', { maxWait: 100 })
    add('C', { maxWait: '30s' })
    await pass(20)
    controller.abort()
    await pass(80)
    expect(heir.error).toMatchObject({ reason: 'queue' })
    await pass(1000)
    expect([names(), at()]).toEqual(['firstC', [0, 1000]])
  })

  it('is kept when a call of a higher priority takes its turn, and the turn that it got is given back', async () => {
    const limiter = limiterOf(evenly(2))
    const { add, names } = open({ limiter, prefetch: 2 })
    add('first')
    const call = add('A', { maxWait: 600 })
    await pass(5)
    add('B', { priority: 1, maxWait: '30s' })
    await pass(594)
    expect([names(), call]).toEqual(['firstB', {}])
    await pass(1)
    expect(call.error).toMatchObject({ reason: 'queue' })
    expect(await limiter.peek('default')).toMatchObject({ retryAfterMs: 400 })
    await pass(2000)
    expect(names()).toBe('firstB')
  })

  it('ends at its turn, if that comes by the deadline, however late the store says so', async () => {
    const { add, names } = open({ limiter: limiterOf(evenly(2)) })
    add('first')
    add('A', { maxWait: 500 })
    await pass(1000)
    expect(names()).toBe('firstA')
  })

  it('is kept when its turn is lost after the deadline', async () => {
    const limiter = limiterOf(evenly(2))
    const { add, names, queue } = open({ limiter })
    const acquire = limiter.acquire.bind(limiter)
    limiter.acquire = async (...args) => {
      const decision = await acquire(...args)
      await new Promise((resolve) => setTimeout(resolve, 100))
      return decision
    }
    add('first')
    await pass(150)
    const call = add('A', { maxWait: 400 })
    await pass(410)
    add('B', { priority: 1, maxWait: '30s' })
    expect(call).toEqual({})
    await pass(60)
    expect([names(), call.error?.reason, queue.size]).toEqual(['firstB', 'queue', 0])
  })

  it('is kept when the queue is paused after the deadline', async () => {
    const limiter = limiterOf(evenly(2))
    const { add, queue } = open({ limiter })
    limiter.acquire = () => new Promise(() => {})
    const call = add('A', { maxWait: 100 })
    await pass(200)
    queue.pause()
    await pass(0)
    expect([call.error?.reason, queue.size]).toEqual(['paused', 0])
  })

  it('is kept when turns are booked anew after the deadline', async () => {
    const limiter = limiterOf(evenly(2))
    const { add, queue } = open({ limiter })
    limiter.acquire = (_, options) =>
      new Promise((_resolve, reject) => {
        const signal = options!.signal!
        signal.addEventListener('abort', () => reject(signal.reason))
      })
    const call = add('A', { maxWait: 100 })
    await pass(150)
    add('B', { priority: 1, maxWait: '30s' })
    queue.setPolicies([evenly(1)])
    await pass(0)
    expect([call.error?.reason, queue.size]).toEqual(['queue', 1])
  })

  it('is its own when it inherits a permit that was asked for with less patience', async () => {
    const semaphore = createSemaphore({ limit: 1 })
    const held = await semaphore.acquire('default')
    const { add, names } = open({ semaphore, limiter: limiterOf(gcra({ limit: 1000, window: '1s' })) })
    const controller = new AbortController()
    add('A', { maxWait: 100, signal: controller.signal })
    add('B', { maxWait: '30s' })
    await pass(20)
    controller.abort()
    await pass(500)
    void held.release()
    await pass(500)
    expect(names()).toBe('B')
  })
})
