import type { Adapter } from './adapter.js'
import { PROBLEM } from './answers.js'
import { rateLimitHeaders } from './headers.js'
import { stopped } from './limits.js'
import type { Serve } from './site.js'

/** Declares the tests that every adapter has to pass about lists of addresses that are always let through or always refused, and `onExceeded`. */
export function entryCases<Req, Res>(adapter: Adapter<Req, Res>, serve: Serve<Req, Res>): void {
  describe('lists', () => {
    it('let an allowed address pass uncounted and without headers', async () => {
      const limiter = stopped(1)
      const site = await serve([{ limiter, key: () => 'k', allow: ['127.0.0.0/8'] }])
      const replies = [await site.send(), await site.send()]
      expect(replies.map(({ status }) => status)).toEqual([200, 200])
      expect(replies.flatMap(rateLimitHeaders)).toEqual([])
      expect((await limiter.peek('k')).remaining).toBe(1)
    })

    it('count an address that is in neither', async () => {
      const site = await serve([{ limiter: stopped(1), allow: ['10.0.0.0/8'], deny: ['192.0.2.1', '::/0'] }])
      expect(await site.statuses([{}, {}])).toEqual([200, 429])
    })

    it('answer a denied address 403 with problem details, before it is allowed or counted', async () => {
      const limiter = stopped(9)
      const deny = ['10.0.0.0/8', '127.0.0.1']
      const site = await serve([{ limiter, key: () => 'k', allow: deny, deny }])
      const { status, headers, text } = await site.send()
      expect([status, site.handled, site.errors]).toEqual([403, 0, []])
      expect(headers).toMatchObject({
        'content-type': expect.stringMatching(PROBLEM),
        'cache-control': 'no-store',
      })
      expect(headers).not.toHaveProperty('retry-after')
      expect(JSON.parse(text)).toMatchObject({ type: 'about:blank', title: 'Forbidden', status: 403 })
      expect((await limiter.peek('k')).remaining).toBe(9)
    })

    it.each<[string, (answer: boolean) => boolean | Promise<boolean>]>([
      ['functions', (answer) => answer],
      ['async functions', async (answer) => answer],
    ])('may be %s of the request', async (_, given) => {
      const is = (user: string) => (req: Req) => given(adapter.header(req, 'x-user') === user)
      const site = await serve([{ limiter: stopped(1), allow: is('ann'), deny: is('bob') }])
      const as = (user: string) => ({ headers: { 'X-User': user } })
      const requests = [as('cid'), as('cid'), as('ann'), as('bob')]
      expect(await site.statuses(requests)).toEqual([200, 429, 200, 403])
    })

    it('take the address that a trusted proxy reports', async () => {
      const site = await serve([{ limiter: stopped(1), deny: ['198.51.100.0/24'] }], { proxyTrust: 1 })
      const from = (address: string) => ({ headers: { 'X-Forwarded-For': address } })
      const requests = [from('198.51.100.7'), from('::ffff:198.51.100.7'), from('203.0.113.7')]
      expect(await site.statuses(requests)).toEqual([403, 403, 200])
    })

    it.each(['allow', 'deny'])("send an error in %s to the framework's error handling", async (name) => {
      const error = new Error('no database')
      const limiter = stopped(9)
      const site = await serve([{ limiter, key: () => 'k', [name]: async () => Promise.reject(error) }])
      expect((await site.send()).status).toBe(500)
      expect([site.errors, site.handled, (await limiter.peek('k')).remaining]).toEqual([[error], 0, 9])
    })
  })

  describe('onExceeded', () => {
    it('is called once when a key goes over, with request and decision', async () => {
      const calls: unknown[] = []
      const site = await serve([
        {
          limiter: stopped(1),
          key: () => 'k',
          onExceeded: (req, _res, { key, limit }) =>
            void calls.push([adapter.header(req, 'x-user'), key, limit]),
        },
      ])
      const as = (user: string) => ({ headers: { 'X-User': user } })
      expect(await site.statuses([as('a'), as('b'), as('c')])).toEqual([200, 429, 429])
      expect(calls).toEqual([['b', 'k', 1]])
    })
  })
}
