import { createSemaphore, gcra } from '@sluice/core'
import { limiterOf, open, outcome, pass, useFakeTime } from './open-queue.js'

useFakeTime()

describe('retry', () => {
  const failing = (times: number) => {
    let calls = 0
    return async () => {
      if (++calls <= times) throw new Error(`failure ${calls}`)
      return calls
    }
  }

  it('calls the function again after its milliseconds, at a turn of its own', async () => {
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

  it('of false, NaN or a time after maxWait rejects with the failure', async () => {
    for (const again of [false, NaN, -1, Infinity, 31_000] as const) {
      const { queue } = open({ retry: () => again, maxWait: '30s' })
      const call = outcome(queue.run(failing(1)))
      await pass(0)
      expect(call.error).toEqual(new Error('failure 1'))
    }
  })

  it('of a time that no clock reaches is none without maxWait either, and of months not one at once', async () => {
    const { queue } = open({
      retry: (error) => ((error as Error).message === 'failure 1' ? 2 ** 31 : Infinity),
    })
    const never = outcome(queue.run(() => Promise.reject(new Error('failure'))))
    const later = outcome(queue.run(failing(1)))
    await pass(1000)
    expect([never.error, later]).toEqual([new Error('failure'), {}])
  })

  it('may be async: the call waits for it, and rejects as it does', async () => {
    for (const fail of [false, true]) {
      const { queue } = open({
        retry: async () => {
          await new Promise((resolve) => setTimeout(resolve, 100))
          if (fail) throw new Error('mistake')
          return 200
        },
      })
      const call = outcome(queue.run(failing(1)))
      await pass(299)
      expect(call).toEqual(fail ? { error: new Error('mistake') } : {})
      await pass(1)
      expect(call.value).toBe(fail ? undefined : 2)
    }
  })

  it('that throws rejects the call, and releases its permit', async () => {
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
  it('holds the key for all processes, and reports the begin and end of the pause', async () => {
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
      { type: 'held', queue: 'test', limiter: 'test', key: 'default', status: undefined, holdMs: 700 },
      { type: 'resumed', queue: 'test', limiter: 'test', key: 'default' },
    ])
  })

  it('pauses the calls of a queue without a limiter, and refuses those that do not wait for so long', async () => {
    const semaphore = createSemaphore({ limit: 5 })
    const { queue, add, at, events } = open({ semaphore, pauseOf: () => 700 })
    outcome(queue.run(() => Promise.reject(new Error('busy'))))
    await pass(10)
    const hasty = add('a', { maxWait: 500 })
    add('b')
    await pass(0)
    expect(hasty.error).toMatchObject({ name: 'RateLimitExceededError', reason: 'held' })
    await pass(300)
    outcome(queue.run(() => Promise.reject(new Error('busy'))))
    await pass(1000)
    expect(at()).toEqual([700])
    await pass(1000)
    expect(events.map(({ type }) => type).filter((type) => ['held', 'resumed'].includes(type))).toEqual([
      'held',
      'resumed',
      'held',
    ])
  })
})

describe('isRefusal', () => {
  const no = async () => {
    throw new Error('no')
  }

  it.each([
    [true, ['started', 'held', 'retried']],
    ['final', ['started', 'failed']],
    ['none', ['started', 'held', 'retried']],
    [undefined, ['started', 'held', 'retried']],
  ] as const)('%p of a failure with a pause', async (said, expected) => {
    const { queue, events } = open({
      isRefusal: () => said,
      pauseOf: () => 5000,
      retry: () => 0,
      maxWait: '1m',
    })
    const call = outcome(queue.run(no))
    await pass(100)
    const shown = events.filter(({ type }) => ['started', 'held', 'retried', 'failed'].includes(type))
    expect(shown.map(({ type }) => type)).toEqual(expected)
    expect(call.error !== undefined).toBe(said === 'final')
    if (said === 'final')
      expect(events).toContainEqual(expect.objectContaining({ type: 'failed', givenUp: 'final' }))
  })

  it("'none' ends no call's row of refusals, and begins none", async () => {
    const { queue, events } = open({ isRefusal: () => 'none' })
    for (let call = 0; call < 3; call++) outcome(queue.run(no))
    await pass(1000)
    expect(events.filter(({ type }) => type === 'held')).toEqual([])
  })
})
