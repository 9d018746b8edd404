import { createLimiter, createSemaphore, fixedWindow, gcra, memoryStore, type Policy } from '@sluice/core'
import { getEventListeners } from 'node:events'
import {
  createQueue,
  limitFetch,
  type QueueEvent,
  type QueueOptions,
  RateLimitExceededError,
  type RunOptions,
} from '../src/index.js'

/** Timers and the clock of this file are Jest's: nothing sleeps. */
const limiterOf = (...policies: Policy[]) => createLimiter({ name: 'test', policies, store: memoryStore() })
const evenly = (limit = 10) => gcra({ limit, window: '1s', burst: 1 })

/** A queue of calls that each take `tookMs`, when they began, and what was reported. */
function open(options: Partial<QueueOptions> = {}, tookMs = 0) {
  const began: { readonly at: number; readonly name: string }[] = []
  const events: QueueEvent[] = []
  const start = performance.now()
  const limiter = 'semaphore' in options ? undefined : limiterOf(evenly())
  const queue = createQueue({
    ...(limiter && { limiter }),
    onEvent: (event) => events.push(event),
    ...options,
  })
  const add = (name: string, runOptions: RunOptions = {}) =>
    outcome(
      queue.run(async () => {
        began.push({ at: Math.round(performance.now() - start), name })
        if (tookMs > 0) await sleep(tookMs)
        return name
      }, runOptions),
    )
  return {
    queue,
    add,
    events,
    at: () => began.map(({ at }) => at),
    names: () => began.map(({ name }) => name).join(''),
    types: () => events.map(({ type }) => type),
  }
}

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))
const pass = (ms: number) => jest.advanceTimersByTimeAsync(ms)

/** What a promise came to so far. */
function outcome<T>(promise: Promise<T>) {
  const seen: { value?: T; error?: any } = {}
  promise.then(
    (value) => (seen.value = value),
    (error: unknown) => (seen.error = error),
  )
  return seen
}

beforeEach(() => jest.useFakeTimers({ now: Date.UTC(2026, 0, 1) }))
afterEach(() => jest.useRealTimers())

describe('run', () => {
  it('calls functions in their turn, and settles as they do', async () => {
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

  it('keeps keys apart, takes the cost, and lets high priorities go first', async () => {
    const { add, names, at } = open({ limiter: limiterOf(gcra({ limit: 10, window: '1s', burst: 4 })) })
    add('a', { key: 'other', cost: 4 })
    add('b', { cost: 4 })
    add('c', { cost: 2 })
    add('d', { cost: 2 })
    add('e', { cost: 2, priority: 1 })
    await pass(2000)
    expect([names(), at()]).toEqual(['aebcd', [0, 0, 200, 400, 600]])
  })

  it('hands the function its decision, its signal, and how often it was called', async () => {
    const { queue } = open()
    const { signal } = new AbortController()
    const seen = outcome(queue.run((context) => context, { signal }))
    await pass(0)
    expect(seen.value).toMatchObject({ signal, attempt: 1, decision: { allowed: true, limiter: 'test' } })
  })

  it('ends its wait with its signal, which it listens to once and then no more', async () => {
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

  it('is refused where there is no turn within maxWait, or too many wait', async () => {
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
  ])('with %j rejects, and leaves the queue as it was', async (options, code) => {
    const { add, queue } = open()
    const call = add('a', options as never)
    await pass(0)
    expect(call.error).toMatchObject({ name: 'InputError', code })
    expect([queue.size, queue.pending]).toEqual([0, 0])
  })
})

describe('wrap', () => {
  it('makes a function that waits, with its arguments and its this', async () => {
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
  it('only so many calls are under way at once', async () => {
    const semaphore = createSemaphore({ limit: 2 })
    const { add, at, queue } = open({ semaphore }, 100)
    for (const name of 'abcde') add(name)
    await pass(50)
    expect([queue.size, queue.pending]).toEqual([3, 2])
    await pass(1000)
    expect(at()).toEqual([0, 0, 100, 100, 200])
    expect([queue.size, queue.pending]).toEqual([0, 0])
  })

  it('more are as soon as the semaphore is resized', async () => {
    const semaphore = createSemaphore({ limit: 1 })
    const { add, at } = open({ semaphore, prefetch: 5 }, 100)
    for (const name of 'abcde') add(name)
    await pass(50)
    semaphore.resize(3)
    await pass(1000)
    expect(at()).toEqual([0, 50, 50, 100, 150])
  })
})

describe('pause', () => {
  it('lets no call out until resume, then all in their order', async () => {
    const { add, at, names, queue, types } = open()
    for (const name of 'ab') add(name)
    await pass(50)
    queue.pause()
    queue.pause()
    add('c', { priority: 1 })
    expect([queue.isPaused, queue.size]).toEqual([true, 2])
    await pass(450)
    queue.resume()
    await pass(1000)
    expect([names(), at()]).toEqual(['acb', [0, 500, 600]])
    expect(types().filter((type) => ['paused', 'continued'].includes(type))).toEqual(['paused', 'continued'])
  })

  it('takes no place of the limiter while it lasts', async () => {
    const limiter = limiterOf(evenly())
    const { add, queue } = open({ limiter })
    for (const name of 'abc') add(name)
    await pass(50)
    queue.pause()
    await pass(50)
    expect(await limiter.peek('default')).toMatchObject({ retryAfterMs: 0 })
  })

  it('does not stop maxWait', async () => {
    const { add, queue } = open()
    queue.pause()
    const call = add('a', { maxWait: 200 })
    await pass(200)
    expect(call.error).toMatchObject({ reason: 'paused' })
  })

  it('of one queue stops no other on the same limiter', async () => {
    const limiter = limiterOf(evenly())
    const [one, other] = [open({ limiter }), open({ limiter })]
    one.add('a')
    one.add('b')
    await pass(0)
    one.queue.pause()
    other.add('c')
    await pass(1000)
    expect([one.names(), other.names()]).toEqual(['a', 'c'])
    expect(other.at()).toEqual([100])
  })
})

describe('clear and close', () => {
  it('clear rejects the calls that wait, and none else', async () => {
    const { add, queue, names, events } = open({}, 300)
    const calls = Array.from('abc').map((name) => add(name))
    await pass(50)
    expect(queue.clear()).toBe(2)
    add('d')
    await pass(1000)
    expect(calls.map(({ value, error }) => value ?? error.reason)).toEqual(['a', 'cleared', 'cleared'])
    expect(names()).toBe('ad')
    expect(events.filter(({ type }) => type === 'denied')).toHaveLength(2)
  })

  it('close rejects them, and all that come later, and waits for the one that runs', async () => {
    const { add, queue } = open({}, 300)
    const [running, waiting] = [add('a'), add('b')]
    await pass(50)
    const closed = outcome(queue.close().then(() => 'closed'))
    const late = add('c')
    await pass(0)
    expect([waiting.error.reason, late.error.reason, closed.value]).toEqual(['closed', 'closed', undefined])
    await pass(250)
    expect([running.value, closed.value]).toEqual(['a', 'closed'])
  })

  it('close with drain makes the calls that wait first, also those of a queue that is paused', async () => {
    const { add, queue, names } = open()
    for (const name of 'abc') add(name)
    queue.pause()
    const closed = outcome(queue.close({ drain: true }).then(() => 'closed'))
    await pass(0)
    expect(add('d')).toEqual({})
    await pass(1000)
    expect([names(), closed.value]).toEqual(['abc', 'closed'])
  })

  it('close with drain repeats what fails, and close without does not', async () => {
    for (const drain of [true, false]) {
      const { queue } = open({ retry: () => 10 })
      let calls = 0
      const call = outcome(
        queue.run(async () => {
          await sleep(50)
          if (++calls === 1) throw new Error('once')
        }),
      )
      await pass(20)
      outcome(queue.close({ drain }))
      await pass(1000)
      expect([calls, call.error?.message]).toEqual(drain ? [2, undefined] : [1, 'once'])
    }
  })
})

describe('onIdle', () => {
  it('resolves when no call waits, runs, or is to be repeated', async () => {
    const { queue } = open({ retry: (_, attempt) => attempt < 3 && 50 })
    await queue.onIdle()
    outcome(queue.run(() => Promise.reject(new Error('no'))))
    const idle = outcome(queue.onIdle().then(() => performance.now()))
    const start = performance.now()
    await pass(1000)
    expect(Math.round(idle.value! - start)).toBe(200)
  })
})

describe('retry', () => {
  const failing = (times: number) => {
    let calls = 0
    return async () => {
      if (++calls <= times) throw new Error(`failure ${calls}`)
      return calls
    }
  }

  it('calls again after so many milliseconds, with a turn of its own', async () => {
    const seen: unknown[] = []
    const limiter = limiterOf(gcra({ limit: 10, window: '1s', burst: 3 }))
    const { queue, types } = open({
      limiter,
      retry: (error, attempt) => (seen.push([(error as Error).message, attempt]), attempt * 200),
    })
    const call = outcome(queue.run(failing(2)))
    await pass(599)
    expect(call.value).toBeUndefined()
    await pass(1)
    expect(call.value).toBe(3)
    expect(seen).toEqual([
      ['failure 1', 1],
      ['failure 2', 2],
    ])
    expect(types().filter((type) => ['retried', 'done', 'failed'].includes(type))).toEqual([
      'retried',
      'retried',
      'done',
    ])
  })

  it('false, NaN, or a time after maxWait hands the failure over', async () => {
    for (const again of [false, NaN, -1, Infinity, 31_000] as const) {
      const { queue } = open({ retry: () => again })
      const call = outcome(queue.run(failing(1)))
      await pass(0)
      expect(call.error).toEqual(new Error('failure 1'))
    }
  })

  it('that throws rejects the call, and gives the place back', async () => {
    const semaphore = createSemaphore({ limit: 1 })
    const { queue } = open({
      semaphore,
      retry: () => {
        throw new Error('mistake')
      },
    })
    const call = outcome(queue.run(failing(1)))
    await pass(0)
    expect(call.error).toEqual(new Error('mistake'))
    expect((await semaphore.acquire('default', { maxWait: 0 })).allowed).toBe(true)
    expect(queue.pending).toBe(0)
  })
})

describe('pauseOf', () => {
  it('holds the key for all processes, and reports when it began and ended', async () => {
    const limiter = limiterOf(gcra({ limit: 100, window: '1s' }))
    const pauseOf = ({ error }: { error: unknown }) => (error as { retryInMs?: number }).retryInMs
    const { queue, add, at, events } = open({ limiter, pauseOf })
    outcome(queue.run(() => Promise.reject(Object.assign(new Error('busy'), { retryInMs: 700 }))))
    await pass(10)
    expect(await limiter.peek('default')).toMatchObject({ reason: 'held' })
    add('a')
    await pass(1000)
    expect(at()).toEqual([700])
    expect(events.filter(({ type }) => type === 'held' || type === 'resumed')).toEqual([
      { type: 'held', key: 'default', status: undefined, holdMs: 700 },
      { type: 'resumed', key: 'default' },
    ])
  })
})

describe('setPolicies', () => {
  it('is for the calls that wait too, and what was consumed counts on', async () => {
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

  it('of one queue gives its calls no place that was booked under those of another', async () => {
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

  it('may be of other shapes, which start anew', async () => {
    const { queue, add, at } = open({ limiter: limiterOf(evenly(1)) })
    for (const name of 'abc') add(name)
    await pass(100)
    queue.setPolicies([fixedWindow({ limit: 100, window: '1s' })])
    await pass(10)
    expect(at()).toEqual([0, 100, 100])
  })

  it.each([[[]], ['fast'], [[{}]], [undefined]])('with %j is refused', (policies) => {
    expect(() => open().queue.setPolicies(policies as never)).toThrow(
      expect.objectContaining({ code: 'INVALID_POLICIES' }),
    )
  })
})

describe('events', () => {
  it('report every state of a call', async () => {
    const { add, queue, events } = open({ retry: (_, attempt) => attempt < 2 && 0 }, 30)
    add('a')
    add('b')
    outcome(queue.run(() => Promise.reject(new Error('no')), { key: 'k', priority: 2 }))
    await pass(1000)
    const of = (key: string) => events.filter((event) => 'key' in event && event.key === key)
    expect(of('k').map(({ type }) => type)).toEqual([
      'queued',
      'started',
      'retried',
      'queued',
      'waited',
      'started',
      'failed',
    ])
    expect(of('k').at(-1)).toMatchObject({ priority: 2, attempt: 2, error: new Error('no') })
    expect(of('default').map(({ type }) => type)).toEqual([
      'queued',
      'queued',
      'started',
      'done',
      'waited',
      'started',
      'done',
    ])
    expect(of('default').at(-1)).toMatchObject({ attempt: 1, ms: 30 })
    expect(events.at(-1)).toEqual({ type: 'idle' })
  })

  it('can be listened to by kind, for as long as is wanted', async () => {
    const { add, queue } = open()
    const done: string[] = []
    const end = queue.on('done', ({ key }) => done.push(key))
    add('a')
    await pass(0)
    end()
    add('b')
    await pass(1000)
    expect(done).toEqual(['default'])
  })
})

it('shares its line with limitFetch on the same limiter', async () => {
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
  [{ cost: '1' }],
  [{ priority: NaN }],
  [{ retry: 3 }],
  [{ pauseOf: 3 }],
  [{ onEvent: 'log' }],
])('options that cannot work are refused: %j', (options) => {
  expect(() => open(options as never)).toThrow(
    expect.objectContaining({ name: 'PolicyError', code: 'INVALID_OPTION' }),
  )
})
