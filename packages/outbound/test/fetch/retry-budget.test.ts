import { gcra } from '@sluice/core'
import { createQueue, limitFetch, type OutboundEvent } from '../../src/index.js'
import { generous, limiterOf, open, outcome, pass, refusal, URL_, useFakeTime } from './limited-fetch.js'

useFakeTime()

/** `calls` at once, which are all refused at first; how many were served, and how the others ended. */
async function refusedAtFirst(calls: number, options: object, headers: Record<string, string> = {}) {
  let sent = 0
  const done: OutboundEvent[] = []
  const answer = async () => {
    const isRefused = ++sent <= calls
    await new Promise((resolve) => setTimeout(resolve, 10))
    return isRefused ? refusal(headers, 503) : new Response()
  }
  const fetch = limitFetch(answer, {
    limiter: generous(),
    ...options,
  })
  fetch.on('done', (event) => done.push(event))
  const results = Array.from({ length: calls }, () => outcome(fetch(URL_)))
  await pass(20_000)
  const statuses = results.map(({ value }) => value!.status)
  return { served: statuses.filter((status) => status === 200).length, done }
}

describe('retryBudget', () => {
  it('is a tenth of the calls and one a second, of which ten seconds are there at the start', async () => {
    const { served, done } = await refusedAtFirst(55, {})
    expect(served).toBe(10 + 5)
    expect(done.filter((event) => event.type === 'done' && event.givenUp === 'budget')).toHaveLength(40)
    expect(done.find((event) => event.type === 'done' && event.givenUp)).toMatchObject({ status: 503 })
  })

  it('is not needed after a stated wait', async () => {
    expect((await refusedAtFirst(50, {}, { 'retry-after': '1' })).served).toBe(50)
  })

  it('may be another one', async () => {
    expect((await refusedAtFirst(50, { retryBudget: { ratio: 0, perSecond: 0 } })).served).toBe(0)
    expect((await refusedAtFirst(50, { retryBudget: { ratio: 1 } })).served).toBe(50)
  })

  it('comes back: what ten seconds are worth within a minute', async () => {
    let isRefused = true
    const { fetch } = open({ retries: 1, retryBudget: { ratio: 0, perSecond: 1.05 } }, async () => {
      const response = isRefused ? refusal({}, 503) : new Response()
      await new Promise((resolve) => setTimeout(resolve, 10))
      return response
    })
    const refusedOf = async (calls: number): Promise<number> => {
      isRefused = true
      const results = Array.from({ length: calls }, () => outcome(fetch(URL_)))
      await pass(500)
      isRefused = false
      await pass(5000)
      return results.filter(({ value }) => value!.status === 503).length
    }
    expect(await refusedOf(30)).toBe(20)
    expect(await refusedOf(30)).toBeGreaterThan(20)
    await pass(60_000)
    expect(await refusedOf(30)).toBe(20)
  })

  it('bounds the repetitions of a queue only if it is given', async () => {
    for (const retryBudget of [undefined, { ratio: 0, perSecond: 0.3 }]) {
      const queue = createQueue({
        limiter: generous(),
        retry: (_, attempt) => attempt < 2 && 10,
        ...(retryBudget && { retryBudget }),
      })
      let runs = 0
      const calls = Array.from({ length: 8 }, () =>
        outcome(queue.run(() => Promise.reject(new Error(`${++runs}`)))),
      )
      await pass(1000)
      expect(calls.every(({ error }) => error)).toBe(true)
      expect(runs).toBe(retryBudget ? 8 + 3 : 16)
    }
  })
})

describe('a limited fetch', () => {
  it('reports what a queue does', async () => {
    const types: string[] = []
    const fetch = limitFetch(
      async () => (types.length < 6 ? refusal({ 'retry-after': '1' }) : new Response()),
      {
        limiter: generous(),
        onEvent: ({ type }) => types.push(type),
      },
    )
    outcome(fetch(URL_))
    await pass(2000)
    expect(types).toEqual([
      'queued',
      'empty',
      'started',
      'held',
      'retried',
      'queued',
      'empty',
      'resumed',
      'waited',
      'started',
      'done',
      'idle',
    ])
  })

  it('takes other policies while calls wait', async () => {
    const { fetch, at } = open({ limiter: limiterOf(gcra({ limit: 1, window: '1s', burst: 1 })) })
    for (let call = 0; call < 4; call++) outcome(fetch(URL_))
    await pass(100)
    fetch.setPolicies([gcra({ limit: 10, window: '1s', burst: 1 })])
    await pass(1000)
    expect(at()).toEqual([0, 100, 200, 300])
    expect(() => fetch.setPolicies([])).toThrow(expect.objectContaining({ code: 'INVALID_POLICIES' }))
  })
})
