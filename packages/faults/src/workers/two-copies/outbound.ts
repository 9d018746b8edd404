import assert from 'node:assert/strict'
import type { Pair } from './copy.js'

/** Calls that go out through one copy under a limiter and a semaphore of the other. */
export const outbound: Readonly<Record<string, (pair: Pair) => Promise<void>>> = {
  async 'limitFetch waits, denies and names its decision'([made, used]) {
    const { createLimiter, createSemaphore, gcra } = made.core
    const limiter = createLimiter({ name: 'provider', policies: [gcra({ limit: 1, window: '1d' })] })
    const semaphore = createSemaphore({ limit: 1 })
    const answer = (): Promise<Response> => Promise.resolve(new Response('served'))
    const fetch = used.outbound.limitFetch(answer, { limiter, semaphore, maxWait: 0 })
    const response = await fetch('http://provider.test/')
    assert.equal(await response.text(), 'served')
    for (const { outbound } of [made, used]) {
      assert.equal(outbound.decisionOf(response)?.limiter, 'provider')
    }
    const error = await fetch('http://provider.test/').catch((failure: unknown) => failure)
    assert.equal((error as { reason?: string }).reason, 'limit', String(error))
    for (const { outbound, core } of [made, used]) {
      assert.ok(error instanceof outbound.RateLimitExceededError, 'instanceof RateLimitExceededError')
      assert.ok(error instanceof core.SluiceError, 'instanceof SluiceError')
    }
    await Promise.all([limiter.close(), semaphore.close()])
  },
}
