import { createLimiter, createSemaphore, memoryStore, tokenBucket } from '@sluice/core'
import { decisionOf, limitFetch } from '../../src/index.js'
import { generous, limiterOf, open, outcome, pass, URL_, useFakeTime } from './limited-fetch.js'

useFakeTime()

describe('a budget', () => {
  it('is charged an estimate, and corrected to the real cost', async () => {
    const limiter = limiterOf(tokenBucket({ limit: 1000, window: '1m' }))
    const { fetch } = open({ limiter, cost: 500 }, () => Response.json({ usage: { total_tokens: 120 } }))
    const response = await fetch(URL_, { method: 'POST', body: '{}' })
    expect((await limiter.peek('https://api.example')).remaining).toBe(500)
    const { usage } = (await response.json()) as { usage: { total_tokens: number } }
    await decisionOf(response)!.settle(usage.total_tokens)
    expect((await limiter.peek('https://api.example')).remaining).toBe(880)
  })

  it('that was underestimated makes the next call wait', async () => {
    const limiter = limiterOf(tokenBucket({ limit: 1000, window: '10s' }))
    const { fetch, at } = open({ limiter, cost: 500 })
    await decisionOf(await fetch(URL_))!.settle(1000)
    outcome(fetch(URL_))
    await pass(5000)
    expect(at()).toEqual([0, 5000])
  })

  it('is distinguished from other limits of the same call by the name of the limiter', async () => {
    const budget = createLimiter({
      name: 'tokens',
      policies: [tokenBucket({ limit: 9, window: '1m' })],
      store: memoryStore(),
    })
    const { fetch } = open({ limiter: budget, cost: 5 })
    const semaphore = createSemaphore({ limit: 1 })
    const response = await limitFetch(fetch, { limiter: generous(), semaphore })(URL_)
    expect(decisionOf(response)!.limiter).toBe('test')
    expect(decisionOf(response, 'tokens')!.remaining).toBe(4)
    expect(decisionOf(response, 'others')).toBeUndefined()
  })

  it('has no decision for a response of another fetch', () => {
    expect(decisionOf(new Response())).toBeUndefined()
  })
})
