import { type Item, parseList } from 'structured-headers'
import { slidingLog, tokenBucket } from '@sluice/core'
import type { Adapter } from './adapter.js'
import type { Reply } from './client.js'
import { itWith } from './it-with.js'
import { stopped } from './limits.js'
import type { Serve } from './site.js'

/** Declares the tests that every adapter has to pass about the headers of a limit in each format, on allowed requests and on denials. */
export function headerCases<Req, Res>(adapter: Adapter<Req, Res>, serve: Serve<Req, Res>): void {
  describe('headers', () => {
    it('are X-RateLimit on an allowed request, with the reset as wall time', async () => {
      const site = await serve([{ limiter: stopped(2) }])
      const [before, { headers }, after] = [seconds(), await site.send(), seconds()]
      expect(headers).toMatchObject({ 'x-ratelimit-limit': '2', 'x-ratelimit-remaining': '1' })
      expect(Number(headers['x-ratelimit-reset'])).toBeGreaterThanOrEqual(before + 60)
      expect(Number(headers['x-ratelimit-reset'])).toBeLessThanOrEqual(after + 60)
      expect(headers).not.toHaveProperty('retry-after')
    })

    it('are X-RateLimit on a denial, with the reset in seconds from now on request', async () => {
      const site = await serve([{ limiter: stopped(1), resetAs: 'delta' }])
      await site.send()
      const { status, headers } = await site.send()
      expect(status).toBe(429)
      expect(headers).toMatchObject({
        'x-ratelimit-limit': '1',
        'x-ratelimit-remaining': '0',
        'x-ratelimit-reset': '60',
      })
    })

    it('are those of the IETF on an allowed request: a quota and what is left of it', async () => {
      const reply = await (await serve([{ limiter: stopped(2), headers: 'ietf' }])).send()
      expect(ietf(reply)).toEqual({
        policy: [['api', { q: 2, w: 60 }]],
        limit: [['api', { r: 1, t: 60 }]],
      })
      expect(reply.headers).not.toHaveProperty('x-ratelimit-limit')
    })

    it('are those of the IETF on a denial, which agree with Retry-After', async () => {
      const policies = [slidingLog({ limit: 1, window: '1500ms' })]
      const site = await serve([{ limiter: stopped(1, { policies }), headers: 'ietf' }])
      await site.send()
      const reply = await site.send()
      expect(ietf(reply)).toEqual({ policy: [['api', { q: 1 }]], limit: [['api', { r: 0, t: 2 }]] })
      expect(reply.headers['retry-after']).toBe('2')
    })

    it('list every policy of a limiter, named after both', async () => {
      const policies = [
        tokenBucket({ limit: 5, window: '1s', capacity: 9, name: 'burst' }),
        slidingLog({ limit: 60, window: '1m' }),
      ]
      const reply = await (await serve([{ limiter: stopped(1, { policies }), headers: 'ietf' }])).send()
      expect(ietf(reply)).toEqual({
        policy: [
          ['api-burst', { q: 5, w: 1 }],
          ['api-60-per-1m', { q: 60, w: 60 }],
        ],
        limit: [
          ['api-burst', { r: 8, t: 1 }],
          ['api-60-per-1m', { r: 59, t: 60 }],
        ],
      })
    })

    it('have both formats on request', async () => {
      const site = await serve([{ limiter: stopped(2), headers: ['x-ratelimit', 'ietf'] }])
      const reply = await site.send()
      expect(reply.headers['x-ratelimit-remaining']).toBe('1')
      expect(ietf(reply).limit).toEqual([['api', { r: 1, t: 60 }]])
    })

    it('are those of draft 6 on request, which agree with Retry-After on a denial', async () => {
      const policies = [slidingLog({ limit: 1, window: '1m' }), slidingLog({ limit: 9, window: '1500ms' })]
      const site = await serve([{ limiter: stopped(1, { policies }), headers: 'draft-6' }])
      const [allowed, denied] = [await site.send(), await site.send()]
      const of = (limit: string, reset: string) => ({
        'ratelimit-policy': '1;w=60, 9;w=2',
        'ratelimit-limit': limit,
        'ratelimit-remaining': '0',
        'ratelimit-reset': reset,
      })
      expect(allowed.headers).toMatchObject(of('1', '60'))
      expect(denied.headers).toMatchObject({ ...of('1', '60'), 'retry-after': '60' })
      expect(rateLimitHeaders(denied)).toHaveLength(4)
    })

    it('are those of draft 7 on request, beside X-RateLimit', async () => {
      const reply = await (await serve([{ limiter: stopped(2), headers: ['x-ratelimit', 'draft-7'] }])).send()
      expect(reply.headers).toMatchObject({
        'x-ratelimit-remaining': '1',
        'ratelimit-policy': '2;w=60',
        ratelimit: 'limit=2, remaining=1, reset=60',
      })
    })

    it('have other names on request, and single ones are omitted', async () => {
      const headerNames = {
        'X-RateLimit-Limit': 'X-Quota',
        'X-RateLimit-Reset': false,
        'Retry-After': 'X-Retry',
      } as const
      const site = await serve([{ limiter: stopped(1), headerNames }])
      await site.send()
      const denied = await site.send()
      expect(denied.headers).toMatchObject({ 'x-quota': '1', 'x-ratelimit-remaining': '0', 'x-retry': '60' })
      expect(rateLimitHeaders(denied)).toEqual(['x-ratelimit-remaining'])
      expect(denied.headers).not.toHaveProperty('retry-after')
    })

    it('are omitted on request, except Retry-After on a denial', async () => {
      const site = await serve([{ limiter: stopped(1), headers: false }])
      expect(rateLimitHeaders(await site.send())).toEqual([])
      const denied = await site.send()
      expect(rateLimitHeaders(denied)).toEqual([])
      expect(denied.headers['retry-after']).toBe('60')
    })

    it('are set with any status of the handler', async () => {
      const answer = () => ({ status: 404, body: 'nothing here' })
      const { status, headers } = await (await serve([{ limiter: stopped(2) }], { answer })).send()
      expect([status, headers['x-ratelimit-remaining']]).toEqual([404, '1'])
    })

    itWith(adapter, 'responses to errors')('are kept if the handler fails', async () => {
      const answer = () => Promise.reject(new Error('no database'))
      const { status, headers } = await (await serve([{ limiter: stopped(2) }], { answer })).send()
      expect([status, headers['x-ratelimit-remaining']]).toEqual([500, '1'])
    })

    describe.each(UPSTREAMS)('of an upstream: %s', (_, own) => {
      const limits = () => [
        { limiter: stopped(2), headers: ['x-ratelimit', 'ietf'] as const },
        { limiter: stopped(9) },
      ]

      it('give way to those of the gateway, which all stand', async () => {
        const reply = await (
          await serve(limits(), { answer: () => ({ headers: own, body: 'passed' }) })
        ).send()
        const names = [
          'ratelimit',
          'ratelimit-policy',
          'x-ratelimit-limit',
          'x-ratelimit-remaining',
          'x-ratelimit-reset',
        ]
        expect(rateLimitHeaders(reply).toSorted()).toEqual(names)
        expect(reply.headers).toMatchObject({ 'x-ratelimit-limit': '2', 'x-ratelimit-remaining': '1' })
        expect(ietf(reply).limit[0]).toEqual(['api', { r: 1, t: 60 }])
      })

      it.each([429, 503])('stand alone and whole on its denial, %d', async (status) => {
        const headers = { ...own, 'retry-after': '7' }
        const reply = await (
          await serve(limits(), { answer: () => ({ status, headers, body: 'denied' }) })
        ).send()
        expect([reply.status, reply.text]).toEqual([status, 'denied'])
        const sent = [...rateLimitHeaders(reply), 'retry-after'].map((name) => [name, reply.headers[name]])
        expect(Object.fromEntries(sent)).toEqual(headers)
      })
    })

    it('of the gateway are left out of a denial of an upstream that has none', async () => {
      const answer = () => ({ status: 429, headers: { 'retry-after': '7' }, body: 'denied' })
      const reply = await (await serve([{ limiter: stopped(2) }], { answer })).send()
      expect([rateLimitHeaders(reply), reply.headers['retry-after']]).toEqual([[], '7'])
    })

    it('are set on a streamed response', async () => {
      const { headers, text } = await (await serve([{ limiter: stopped(2) }], { answer: streamed })).send()
      expect([headers['x-ratelimit-remaining'], text]).toEqual(['1', 'one, two'])
    })
  })
}

const seconds = () => Math.ceil(Date.now() / 1000)

/** Sets of headers as upstreams send them, some like those of the gateway. */
const UPSTREAMS: [string, Record<string, string>][] = [
  ['X-RateLimit without a reset', { 'x-ratelimit-limit': '2', 'x-ratelimit-remaining': '0' }],
  [
    'further X-RateLimit',
    { 'x-ratelimit-remaining': '0', 'x-ratelimit-used': '5', 'x-ratelimit-resource': 'core' },
  ],
  ['the newest draft', { 'ratelimit-policy': '"api";q=2;w=60', ratelimit: '"api";r=0;t=7' }],
  ['draft 6', { 'ratelimit-limit': '2', 'ratelimit-remaining': '0', 'ratelimit-reset': '7' }],
  ['X-Rate-Limit', { 'x-rate-limit-limit': '2', 'x-rate-limit-remaining': '0' }],
]

/** A body that comes in two pieces. */
async function* chunks() {
  yield 'one, '
  yield 'two'
}
const streamed = () => ({ body: chunks() })

/** The two headers of the IETF draft, the policies and what is left of each, as a parser of structured fields reads them. */
export function ietf({ headers }: Reply) {
  return { policy: items(headers['ratelimit-policy']), limit: items(headers['ratelimit']) }
}

/** The items of a list of structured fields (RFC 9651), each as its name and its parameters. */
function items(field: string | string[] | undefined) {
  return (parseList(String(field)) as Item[]).map(([name, parameters]) => [
    name,
    Object.fromEntries(parameters),
  ])
}

/** The names of all headers of a reply that are about rate limits. */
export function rateLimitHeaders({ headers }: Reply): readonly string[] {
  return Object.keys(headers).filter((name) => /rate-?limit/.test(name))
}
