import { Agent } from 'node:http'
import { text } from 'node:stream/consumers'
import type { Adapter } from './adapter.js'
import { PROBLEM } from './answers.js'
import { GET, LAST_GET, sendRaw } from './client.js'
import { rateLimitHeaders } from './headers.js'
import { stopped } from './limits.js'
import type { Serve } from './site.js'

/** Declares the tests that every adapter has to pass about connections: HEAD and CORS, requests on one kept connection, bodies that are not read, pipelining. */
export function connectionCases<Req, Res>(adapter: Adapter<Req, Res>, serve: Serve<Req, Res>): void {
  describe('requests', () => {
    it('by HEAD are counted, and denied without a body', async () => {
      const site = await serve([{ limiter: stopped(1) }])
      const [allowed, denied] = [await site.send({ method: 'HEAD' }), await site.send({ method: 'HEAD' })]
      expect([allowed.status, allowed.headers['x-ratelimit-remaining']]).toEqual([200, '0'])
      expect([denied.status, denied.text]).toEqual([429, ''])
      expect(denied.headers).toMatchObject({
        'content-type': expect.stringMatching(PROBLEM),
        'retry-after': '60',
      })
    })

    it.each(['POST', 'OPTIONS'])('by %s are counted', async (method) => {
      const site = await serve([{ limiter: stopped(1) }])
      expect(await site.statuses([{}, { method }])).toEqual([200, 429])
    })

    it('that are CORS preflights pass uncounted with a skip', async () => {
      const skip = (req: Req) => adapter.method(req) === 'OPTIONS'
      const site = await serve([{ limiter: stopped(1), skip }])
      const headers = { Origin: 'https://example.com', 'Access-Control-Request-Method': 'POST' }
      const preflight = await site.send({ method: 'OPTIONS', headers })
      expect([preflight.status, rateLimitHeaders(preflight)]).toEqual([200, []])
      expect(await site.statuses([{}, { method: 'OPTIONS' }, {}])).toEqual([200, 200, 429])
    })

    it('on one kept connection are each counted', async () => {
      const site = await serve([{ limiter: stopped(2) }])
      const agent = new Agent({ keepAlive: true, maxSockets: 1 })
      const left = []
      for (let i = 0; i < 3; i++) left.push((await site.send({ agent })).headers['x-ratelimit-remaining'])
      agent.destroy()
      expect(left).toEqual(['1', '0', '0'])
    })

    it('denied with their body unread leave the connection usable', async () => {
      const cost = (req: Req) => (adapter.method(req) === 'POST' ? 3 : 1)
      const site = await serve([{ limiter: stopped(2), cost }])
      const agent = new Agent({ keepAlive: true, maxSockets: 1 })
      const post = { method: 'POST', body: 'x'.repeat(200_000), agent }
      const statuses = await site.statuses([post, { agent }, post, { agent }])
      agent.destroy()
      expect(statuses).toEqual([429, 200, 429, 200])
    })

    it('pipelined on one connection are each counted, each with its own remaining', async () => {
      const site = await serve([{ limiter: stopped(4) }])
      const responses = await text(sendRaw(site.port, GET.repeat(4) + LAST_GET))
      expect(responses.match(/(?<=HTTP\/1.1 )\d+/g)).toEqual(['200', '200', '200', '200', '429'])
      expect(responses.match(/(?<=x-ratelimit-remaining: )\d+/gi)).toEqual(['3', '2', '1', '0', '0'])
    })
  })
}
