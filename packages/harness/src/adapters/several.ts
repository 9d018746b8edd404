import type { Adapter } from './adapter.js'
import { ietf } from './headers.js'
import { stopped } from './limits.js'
import type { Serve } from './site.js'

/** Declares the tests that every adapter has to pass about several limiters one after the other on a request: their headers, and what is charged when one denies. */
export function severalCases<Req, Res>(_adapter: Adapter<Req, Res>, serve: Serve<Req, Res>): void {
  describe('several limiters on one request', () => {
    it('are each listed once for the IETF, in the order in which they count', async () => {
      const reply = await (await serve([limit(9, 'all'), limit(4, 'few'), limit(7, 'some')])).send()
      expect(ietf(reply)).toEqual({
        policy: [
          ['all', { q: 9, w: 60 }],
          ['few', { q: 4, w: 60 }],
          ['some', { q: 7, w: 60 }],
        ],
        limit: [
          ['all', { r: 8, t: 60 }],
          ['few', { r: 3, t: 60 }],
          ['some', { r: 6, t: 60 }],
        ],
      })
    })

    it.each([
      ['first', [4, 9]],
      ['last', [9, 4]],
    ])('show the most restrictive one in X-RateLimit if it counts %s', async (_, limits) => {
      const { headers } = await (await serve(limits.map((n) => limit(n, `n${n}`)))).send()
      expect(headers).toMatchObject({ 'x-ratelimit-limit': '4', 'x-ratelimit-remaining': '3' })
    })

    it('show the one that denies before one with less remaining, and name it', async () => {
      const empty = limit(1, 'empty')
      const large = { ...limit(9, 'large'), cost: () => 10 }
      const { status, headers, text } = await (await serve([empty, large])).send()
      expect(status).toBe(429)
      expect(headers).toMatchObject({ 'x-ratelimit-limit': '9', 'x-ratelimit-remaining': '9' })
      expect(JSON.parse(text)).toMatchObject({ 'violated-policies': ['large'] })
    })

    it('charge nothing after one has denied', async () => {
      const second = stopped(9, { name: 'second' })
      const charged: unknown[] = []
      second.on('decision', (event) => void (event.charged && charged.push(event)))
      const site = await serve([limit(1, 'first'), { limiter: second }])
      const replies = [await site.send(), await site.send()]
      expect(replies.map(({ status }) => status)).toEqual([200, 429])
      expect(JSON.parse(replies[1]!.text)).toMatchObject({ 'violated-policies': ['first'] })
      expect(charged).toHaveLength(1)
    })

    it('hide one without headers', async () => {
      const { headers } = await (
        await serve([{ limiter: stopped(1), headers: false }, limit(9, 'seen')])
      ).send()
      expect(headers).toMatchObject({ 'x-ratelimit-limit': '9', ratelimit: '"seen";r=8;t=60' })
    })
  })

  function limit(n: number, name: string) {
    return { limiter: stopped(n, { name }), headers: ['x-ratelimit', 'ietf'] as const }
  }
}
