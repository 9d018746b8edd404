import { createSemaphore, gcra } from '@sluice/core'
import { getEventListeners } from 'node:events'
import { limitFetch, RateLimitExceededError } from '../../src/index.js'
import { evenly, limiterOf, open, outcome, pass, useFakeTime } from './open-queue.js'

useFakeTime()

describe('run', () => {
  it('calls functions at their turn, and settles as they do', async () => {
    const { add, at, names, queue } = open()
    const calls = Array.from('abc').map((name) => add(name))
    const failing = outcome(queue.run(() => Promise.reject(new Error('no'))))
    const throwing = outcome(
      queue.run(() => {
        throw new Error('at once')
      }),
    )
    await pass(1000)
    expect([names(), at()]).toEqual(['abc', [0, 100, 200]])
    expect(calls.map(({ value }) => value)).toEqual(['a', 'b', 'c'])
    expect([failing.error, throwing.error]).toEqual([new Error('no'), new Error('at once')])
  })

  it('counts keys apart, charges the cost, and serves high priorities first', async () => {
    const { add, names, at } = open({ limiter: limiterOf(gcra({ limit: 10, window: '1s', burst: 4 })) })
    add('a', { key: 'other', cost: 4 })
    add('b', { cost: 4 })
    add('c', { cost: 2 })
    add('d', { cost: 2 })
    add('e', { cost: 2, priority: 1 })
    await pass(2000)
    expect([names(), at()]).toEqual(['aebcd', [0, 0, 200, 400, 600]])
  })

  it('passes the decision, the signal and the number of the attempt to the function', async () => {
    const { queue } = open()
    const { signal } = new AbortController()
    const seen = outcome(queue.run((context) => context, { signal }))
    await pass(0)
    expect(seen.value).toMatchObject({ signal, attempt: 1, decision: { allowed: true, limiter: 'test' } })
  })

  it('ends its wait when its signal aborts, on which it adds one listener and leaves none', async () => {
    const { add, names } = open()
    const controller = new AbortController()
    const calls = Array.from('abcdefghijkl').map((name) => add(name, { signal: controller.signal }))
    await pass(50)
    expect(getEventListeners(controller.signal, 'abort').length).toBeLessThanOrEqual(1)
    controller.abort(new Error('gone'))
    await pass(1000)
    expect(names()).toBe('a')
    expect(calls.at(-1)!.error).toEqual(new Error('gone'))
    expect(getEventListeners(controller.signal, 'abort')).toHaveLength(0)
  })

  it('is refused if there is no turn within maxWait, or if the queue is full', async () => {
    const { add } = open({ maxQueue: 3, prefetch: 3 })
    const calls = Array.from('abcde').map((name) => add(name, { maxWait: 150 }))
    await pass(1000)
    expect(calls.map(({ error }) => error?.reason)).toEqual([undefined, undefined, 'limit', 'queue', 'queue'])
    expect(calls[2]!.error).toBeInstanceOf(RateLimitExceededError)
  })

  it.each([
    [{ cost: 1.5 }, 'INVALID_COST'],
    [{ maxWait: -1 }, 'INVALID_DURATION'],
    [{ priority: NaN }, 'INVALID_PRIORITY'],
    [{ key: 7 }, 'INVALID_KEY'],
    [{ weight: 2 }, 'INVALID_OPTION'],
    [5, 'INVALID_OPTION'],
  ])('with %j rejects, and leaves the queue as it was', async (options, code) => {
    const { add, queue } = open()
    const call = add('a', options as never)
    await pass(0)
    expect(call.error).toMatchObject({ name: 'InputError', code })
    expect([queue.size, queue.pending]).toEqual([0, 0])
  })
})

describe('wrap', () => {
  it('rejects where the function of its options throws', async () => {
    const fail = (): never => {
      throw new Error('no options')
    }
    await expect(open().queue.wrap(() => 1, fail)()).rejects.toThrow('no options')
  })

  it('makes a function that waits, and keeps its arguments and its this', async () => {
    const { queue } = open()
    const account = {
      balance: 5,
      add: queue.wrap(function (this: { balance: number }, amount: number) {
        return this.balance + amount
      }),
    }
    const sums = [outcome(account.add(1)), outcome(account.add(2))]
    await pass(50)
    expect(sums.map(({ value }) => value)).toEqual([6, undefined])
    await pass(50)
    expect(sums[1]!.value).toBe(7)
  })

  it('takes options that depend on the arguments', async () => {
    const { queue } = open()
    const seen: number[] = []
    const wrapped = queue.wrap(
      (n: number) => seen.push(n),
      (n) => ({ priority: n }),
    )
    for (const n of [0, 1, 2, 3]) outcome(wrapped(n))
    await pass(1000)
    expect(seen).toEqual([3, 2, 1, 0])
  })
})

describe('without a limiter', () => {
  it('the semaphore bounds how many calls are under way', async () => {
    const semaphore = createSemaphore({ limit: 2 })
    const { add, at, queue } = open({ semaphore }, 100)
    for (const name of 'abcde') add(name)
    await pass(50)
    expect([queue.size, queue.pending]).toEqual([3, 2])
    await pass(1000)
    expect(at()).toEqual([0, 0, 100, 100, 200])
    expect([queue.size, queue.pending]).toEqual([0, 0])
  })

  it('functions get no decision, and costs are checked all the same', async () => {
    const { queue } = open({ semaphore: createSemaphore({ limit: 1 }) })
    const seen = outcome(queue.run((context) => context))
    const odd = outcome(queue.run(() => 1, { cost: NaN }))
    await pass(0)
    expect(seen.value).toEqual({ signal: undefined, decision: undefined, attempt: 1 })
    expect(odd.error).toMatchObject({ name: 'InputError', code: 'INVALID_COST' })
  })

  it('more calls start as soon as the semaphore is resized', async () => {
    const semaphore = createSemaphore({ limit: 1 })
    const { add, at } = open({ semaphore, prefetch: 5 }, 100)
    for (const name of 'abcde') add(name)
    await pass(50)
    semaphore.resize(3)
    await pass(1000)
    expect(at()).toEqual([0, 50, 50, 100, 150])
  })
})

it('shares its queue with limitFetch on the same limiter', async () => {
  const limiter = limiterOf(evenly())
  const { add, at } = open({ limiter, key: 'psp' })
  const sent: number[] = []
  const start = performance.now()
  const fetch = limitFetch(async () => (sent.push(Math.round(performance.now() - start)), new Response()), {
    limiter,
    key: 'psp',
    priority: 1,
  })
  for (const name of 'abc') add(name)
  await pass(0)
  outcome(fetch('https://psp.example'))
  await pass(1000)
  expect([at(), sent]).toEqual([[0, 200, 300], [100]])
})

it.each([
  [{ limiter: undefined }],
  [{ limiter: {} }],
  [{ key: 1 }],
  [{ name: 1 }],
  [{ cost: '1' }],
  [{ cost: 1.5 }],
  [{ priority: NaN }],
  [{ retry: 3 }],
  [{ pauseOf: 3 }],
  [{ onEvent: 'log' }],
])('options that cannot work are refused: %j', (options) => {
  expect(() => open(options as never)).toThrow(
    expect.objectContaining({ name: 'PolicyError', code: 'INVALID_OPTION' }),
  )
})
