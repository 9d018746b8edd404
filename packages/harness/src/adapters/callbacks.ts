import { slidingLog } from '@sluice/core'
import type { Adapter } from './adapter.js'
import { rateLimitHeaders } from './headers.js'
import { itWith } from './it-with.js'
import { stopped } from './limits.js'
import type { Serve } from './site.js'

/** No more of a promise than its `then`, which calls back in the same tick. */
const thenable = <T>(value: T) => ({ then: (resolved: (value: T) => void) => resolved(value) }) as Promise<T>

/** Declares the tests that every adapter has to pass about functions of the user: keys, costs, policies and skips of each request, and errors that they throw. */
export function callbackCases<Req, Res>(adapter: Adapter<Req, Res>, serve: Serve<Req, Res>): void {
  describe.each<[string, <T>(value: T) => T | Promise<T>]>([
    ['options', (value) => value],
    ['async options', async (value) => value],
    ['options that return what has a `then` alone', thenable],
  ])('%s', (_, given) => {
    it('count each caller by its key', async () => {
      const key = (req: Req) => given(adapter.header(req, 'x-user')!)
      const site = await serve([{ limit: 1, window: '1m', key }])
      const as = (user: string) => ({ headers: { 'X-User': user } })
      expect(await site.statuses([as('ann'), as('bob'), as('ann')])).toEqual([200, 200, 429])
    })

    it('charge a request its cost', async () => {
      const cost = (req: Req) => given(Number(adapter.header(req, 'x-cost')))
      const site = await serve([{ limiter: stopped(9), cost }])
      const { headers } = await site.send({ headers: { 'X-Cost': '3' } })
      expect(headers['x-ratelimit-remaining']).toBe('6')
    })

    it('choose the policies of a request', async () => {
      const paid = [slidingLog({ limit: 99, window: '1m' })]
      const policies = (req: Req) => given(adapter.header(req, 'x-tier') === 'paid' ? paid : undefined)
      const site = await serve([{ limit: 9, window: '1m', policies }])
      const limits = [await site.send(), await site.send({ headers: { 'X-Tier': 'paid' } })]
      expect(limits.map(({ headers }) => headers['x-ratelimit-limit'])).toEqual(['9', '99'])
    })

    it('skip a request, which gets no headers', async () => {
      const skip = (req: Req) => given(adapter.header(req, 'x-probe') !== undefined)
      const site = await serve([{ limiter: stopped(1), skip }])
      const probe = await site.send({ headers: { 'X-Probe': '1' } })
      expect([probe.status, rateLimitHeaders(probe)]).toEqual([200, []])
      expect(await site.statuses([{}, {}])).toEqual([200, 429])
    })
  })

  describe('an error', () => {
    const error = new Error('no database')
    const fail = () => {
      throw error
    }

    it.each(['key', 'cost', 'skip', 'policies', 'onDenied'] as const)(
      "thrown in %s reaches the framework's error handling",
      async (name) => expect(await failing({ [name]: fail })).toEqual(REFUSED),
    )

    it.each(['key', 'cost', 'skip', 'policies', 'onDenied'] as const)(
      "that %s rejects with reaches the framework's error handling",
      async (name) => expect(await failing({ [name]: async () => fail() })).toEqual(REFUSED),
    )

    itWith(adapter, 'responses to errors').each<[string, () => unknown]>([
      ['thrown in', fail],
      ['rejected by', async () => fail()],
    ])('%s onDenied keeps the headers of the denial', async (_, onDenied) => {
      const site = await serve([{ limiter: stopped(1), cost: () => 1, onDenied }])
      await site.send()
      const { status, headers } = await site.send()
      expect([status, site.errors]).toEqual([500, [error]])
      expect(headers).toMatchObject({ 'x-ratelimit-limit': '1', 'x-ratelimit-remaining': '0' })
      expect(headers).toMatchObject({ 'retry-after': '60', 'cache-control': 'no-store' })
    })

    it("about an invalid cost reaches the framework's error handling", async () => {
      const site = await serve([{ limiter: stopped(9), cost: () => -1 }])
      expect((await site.send()).status).toBe(500)
      expect(site.errors).toEqual([expect.objectContaining({ code: 'INVALID_COST' })])
      expect(site.handled).toBe(0)
    })

    it("of a closed limiter reaches the framework's error handling", async () => {
      const limiter = stopped(9)
      const site = await serve([{ limiter }])
      await limiter.close()
      expect((await site.send()).status).toBe(500)
      expect(site.errors).toEqual([expect.objectContaining({ code: 'CLOSED' })])
      expect(site.handled).toBe(0)
    })

    it('of the handler is not handled as one of the limiter', async () => {
      const limiter = stopped(9)
      const site = await serve([{ limiter, key: async () => 'k' }], { answer: fail })
      expect((await site.send()).status).toBe(500)
      expect([site.handled, site.errors]).toEqual([1, [error]])
      expect((await limiter.peek('k')).remaining).toBe(8)
    })

    const REFUSED = { status: 500, errors: [error], handled: 0, remaining: 2 }

    /** A request that is denied where the options do not fail before, so that onDenied is asked too. */
    async function failing(options: object) {
      const limiter = stopped(2)
      const site = await serve([{ limiter, key: () => 'k', cost: () => 3, ...options }])
      const { status } = await site.send()
      const { remaining } = await limiter.peek('k')
      return { status, errors: site.errors, handled: site.handled, remaining }
    }
  })
}
