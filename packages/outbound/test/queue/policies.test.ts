import { createSemaphore, fixedWindow, gcra } from '@sluice/core'
import { evenly, limiterOf, open, outcome, pass, useFakeTime } from './open-queue.js'

useFakeTime()

describe('setPolicies', () => {
  it('applies to waiting calls too, and consumed units still count', async () => {
    const { queue, add, at } = open({ limiter: limiterOf(evenly(1)) })
    for (const name of 'abcd') add(name)
    await pass(100)
    queue.setPolicies([evenly(10)])
    await pass(1000)
    expect(at()).toEqual([0, 100, 200, 300])
    queue.setPolicies([evenly(2)])
    add('e')
    add('f')
    await pass(3000)
    expect(at().slice(4)).toEqual([1100, 1600])
  })

  it('of one queue gives its calls no turn that was booked under those of another', async () => {
    const limiter = limiterOf(evenly(10))
    const [fast, slow] = [open({ limiter }), open({ limiter, priority: 1 })]
    slow.queue.setPolicies([evenly(1)])
    fast.add('a')
    fast.add('b')
    await pass(50)
    slow.add('c')
    await pass(3000)
    expect(fast.at()).toEqual([0, 100])
    expect(slow.at()[0]).toBeGreaterThan(1000)
  })

  it('of other shapes starts with a full allowance', async () => {
    const { queue, add, at } = open({ limiter: limiterOf(evenly(1)) })
    for (const name of 'abc') add(name)
    await pass(100)
    queue.setPolicies([fixedWindow({ limit: 100, window: '1s' })])
    await pass(10)
    expect(at()).toEqual([0, 100, 100])
  })

  it('gives a queue a rate that was made without a limiter, once its pause is over', async () => {
    const semaphore = createSemaphore({ limit: 5 })
    const { queue, add, at } = open({ semaphore, pauseOf: () => 300 })
    for (const name of 'ab') add(name)
    outcome(queue.run(() => Promise.reject(new Error('busy'))))
    await pass(0)
    queue.setPolicies([evenly(10)])
    for (const name of 'cde') add(name)
    await pass(1000)
    expect(at()).toEqual([0, 0, 300, 400, 500])
  })

  const named = gcra({ name: 'a', limit: 10, window: '1s' })
  it.each([
    ['no policy', [], 'INVALID_POLICIES'],
    ['a text', 'fast', 'INVALID_POLICIES'],
    ['what is no policy', [{}], 'INVALID_POLICIES'],
    ['nothing', undefined, 'INVALID_POLICIES'],
    ['two policies of one name', [named, named], 'DUPLICATE_NAME'],
    ['11 policies', Array.from({ length: 11 }, () => evenly()), 'INVALID_POLICIES'],
  ])('with %s is refused, and the policies stay', async (_, policies, code) => {
    for (const options of [{}, { semaphore: createSemaphore({ limit: 5 }) }]) {
      const { queue, add, at } = open(options)
      const calls = [add('a'), add('b')]
      expect(() => queue.setPolicies(policies as never)).toThrow(expect.objectContaining({ code }))
      add('c')
      await pass(1000)
      expect(calls.map(({ error }) => error)).toEqual([undefined, undefined])
      expect(at()).toEqual('semaphore' in options ? [0, 0, 0] : [0, 100, 200])
    }
  })
})
