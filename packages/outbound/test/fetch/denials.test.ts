import { createLimiter, gcra, memoryStore } from '@sluice/core'
import { evenly, limiterOf, open, outcome, pass, URL_, useFakeTime } from './limited-fetch.js'

useFakeTime()

describe('a denial', () => {
  it('rejects with an error that holds the decision, and sends nothing', async () => {
    const { fetch, sent, events } = open({ limiter: evenly(), maxWait: 50 })
    await fetch(URL_)
    const second = outcome(fetch(URL_))
    await pass(0)
    expect(second.error).toMatchObject({
      name: 'RateLimitExceededError',
      code: 'RATE_LIMIT_EXCEEDED',
      key: 'https://api.example',
      reason: 'limit',
      decision: { allowed: false, retryAfterMs: 100 },
    })
    expect(sent).toHaveLength(1)
    expect(events.at(-1)).toMatchObject({ type: 'denied', reason: 'limit' })
  })

  it('comes as soon as no turn can come in time', async () => {
    const { fetch, at } = open({ limiter: evenly(), maxWait: 250 })
    const calls = Array.from({ length: 5 }, () => outcome(fetch(URL_)))
    await pass(200)
    expect(at()).toEqual([0, 100, 200])
    expect(calls.map(({ error }) => error?.reason)).toEqual([
      undefined,
      undefined,
      undefined,
      'limit',
      'limit',
    ])
  })

  it('comes at the end of maxWait for calls behind others in this process', async () => {
    const limiter = limiterOf(gcra({ limit: 1, window: '10s', burst: 1 }))
    const patient = open({ limiter })
    const hasty = open({ limiter, maxWait: 100 })
    await patient.fetch(URL_)
    outcome(patient.fetch(URL_))
    const call = outcome(hasty.fetch(URL_))
    await pass(99)
    expect(call.error).toBeUndefined()
    await pass(1)
    expect(call.error).toMatchObject({ reason: 'queue', decision: undefined })
  })

  it('comes at once when the queue is full', async () => {
    const { fetch } = open({ limiter: evenly(), maxQueue: 2 })
    await fetch(URL_)
    const [, , third] = [1, 2, 3].map(() => outcome(fetch(URL_)))
    await pass(0)
    expect(third!.error).toMatchObject({ reason: 'queue', decision: undefined })
  })

  it('reports a cost that never fits, and the next call passes', async () => {
    const { fetch, sent } = open({
      limiter: evenly(),
      cost: ({ url }) => Number(url.searchParams.get('cost')),
    })
    const calls = ['2', '1'].map((cost) => outcome(fetch(`${URL_}?cost=${cost}`)))
    await pass(0)
    expect(calls[0]!.error).toMatchObject({ reason: 'cost' })
    expect(sent).toHaveLength(1)
  })

  it('passes on the error of a store that cannot decide', async () => {
    const policies = [gcra({ limit: 1, window: '1s' })]
    const failing = { ...memoryStore(), now: () => 0, close: () => {} } as never as ReturnType<
      typeof memoryStore
    >
    Object.assign(failing, {
      keyspace: () => ({ policies, decide: () => Promise.reject(new Error('down')) }),
    })
    const limiter = createLimiter({ name: 'a', policies, store: failing, onStoreError: 'throw' })
    await expect(open({ limiter }).fetch(URL_)).rejects.toThrow('down')
  })
})
