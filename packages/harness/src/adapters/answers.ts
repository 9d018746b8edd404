import { type Decision, slidingLog } from '@sluice/core'
import type { Adapter } from './adapter.js'
import { INSTANCE } from './denial-ids.js'
import { stopped, undecided } from './limits.js'
import type { Serve } from './site.js'

/** Frameworks may name a charset beside it. */
export const PROBLEM = /^application\/problem\+json(?:;|$)/

/** Declares the tests that every adapter has to pass about what a caller is answered: the handler's response up to the limit, a problem with the wait beyond it. */
export function answerCases<Req, Res>(adapter: Adapter<Req, Res>, serve: Serve<Req, Res>): void {
  describe('an answer', () => {
    it('comes from the handler up to the limit, and is 429 after it', async () => {
      const site = await serve([{ limit: 2, window: '1m' }])
      expect(await site.statuses([{}, {}, {}, {}])).toEqual([200, 200, 429, 429])
      expect(site.handled).toBe(2)
    })

    it('to a denied request has problem details and forbids caches to store it', async () => {
      const site = await serve([{ limiter: stopped(1) }])
      await site.send()
      const { status, headers, text } = await site.send()
      expect(status).toBe(429)
      expect(headers).toMatchObject({
        'content-type': expect.stringMatching(PROBLEM),
        'cache-control': 'no-store',
      })
      expect(JSON.parse(text)).toEqual({
        type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
        title: 'Quota Exceeded',
        status: 429,
        detail: 'Too many requests. Try again in 60 seconds.',
        'violated-policies': ['api'],
        ...INSTANCE,
      })
    })

    it('to a denied request says when to retry, in seconds rounded up', async () => {
      const policies = [slidingLog({ limit: 1, window: '1200ms' })]
      const site = await serve([{ limiter: stopped(1, { policies }) }])
      await site.send()
      expect((await site.send()).headers['retry-after']).toBe('2')
    })

    it('to a key that a penalty blocks says when the block ends, from the request on that starts it', async () => {
      const site = await serve([{ limiter: stopped(1, { penalty: { after: 2, block: '10m' } }) }])
      const retries = []
      for (let i = 0; i < 4; i++) retries.push((await site.send()).headers['retry-after'])
      expect(retries).toEqual([undefined, '60', '600', '600'])
    })

    it('to a denied request has no Retry-After if no wait helps', async () => {
      const site = await serve([{ limiter: stopped(1), cost: () => 2 }])
      const { status, headers } = await site.send()
      expect(status).toBe(429)
      expect(headers).not.toHaveProperty('retry-after')
    })

    it('to a denied request names its caller by an id, where it is given one', async () => {
      const kept: unknown[] = []
      const denialId = ({ limiter, key, reason }: Decision) => `id-${kept.push([limiter, key, reason])}`
      const options = { key: () => 'user:42', denialId }
      const site = await serve([{ limiter: stopped(1), ...options }])
      const answers = [await site.send(), await site.send(), await site.send()]
      expect(answers.map(({ status }) => status)).toEqual([200, 429, 429])
      const ids = answers.slice(1).map(({ text }) => (JSON.parse(text) as { instance: string }).instance)
      expect(ids).toEqual(['urn:sluice:denial:id-1', 'urn:sluice:denial:id-2'])
      expect(kept).toEqual(Array(2).fill(['api', 'user:42', 'limit']))
    })

    it.each<[string, (text: string) => unknown]>([
      ['', (text) => text],
      [' that is async', async (text) => text],
    ])('to a denied request is left to onDenied%s, with status and headers set', async (_, asked) => {
      const onDenied = async (req: Req, res: Res) => {
        const text = (await asked('slow down')) as string
        return adapter.answerDenial(req, res, text)
      }
      const site = await serve([{ limiter: stopped(1), onDenied }])
      await site.send()
      const { status, headers, text } = await site.send()
      expect([status, text]).toEqual([429, 'slow down'])
      expect(headers).toMatchObject({ 'retry-after': '60', 'x-ratelimit-remaining': '0' })
      expect(headers['content-type']).not.toMatch(PROBLEM)
    })

    it('to a denied request is what onDenied returns, an object as JSON whatever its members are called', async () => {
      const answer = { error: 'limited', on: 'requests', hasRef: true, headers: { a: 'b' }, status: 'full' }
      const site = await serve([{ limiter: stopped(1), onDenied: () => answer }])
      await site.send()
      const { status, headers, text } = await site.send()
      expect([status, JSON.parse(text)]).toEqual([429, answer])
      expect(headers['content-type']).toMatch(/^application\/json/)
    })

    it('to a denied request stays a denial where onDenied returns null', async () => {
      const site = await serve([{ limiter: stopped(1), onDenied: () => null }])
      await site.send()
      const { status, headers } = await site.send()
      expect([status, headers['retry-after']]).toEqual([429, '60'])
    })

    it('is never a denial in shadow mode, and has no Retry-After', async () => {
      const site = await serve([{ limit: 1, window: '1m', enforce: false }])
      await site.send()
      const { status, headers } = await site.send()
      expect(status).toBe(200)
      expect(headers).not.toHaveProperty('retry-after')
    })

    it('is 503 with problem details if neither the store nor the process can decide', async () => {
      const site = await serve([{ limiter: undecided({ onStoreError: 'deny' }) }])
      const { status, headers, text } = await site.send()
      expect([status, headers['retry-after']]).toEqual([503, '1'])
      expect(JSON.parse(text)).toMatchObject({ status: 503, title: 'Temporary Reduced Capacity' })
      expect(site.handled).toBe(0)
    })
  })
}
