import type { Limiter } from '@sluice/core'
import type { RequestLimitOptions } from '@sluice/http'
import type { Adapter } from './adapter.js'
import { exchange } from './charge.js'
import { ietf, rateLimitHeaders } from './headers.js'
import { stopped, undecided } from './limits.js'
import type { Serve } from './site.js'

type Limits<Req, Res> = Extract<RequestLimitOptions<Req, Res>['limits'] & {}, readonly unknown[]>

/** Declares the tests that every adapter has to pass about several limits that are decided together: a request is charged under all of them, or under none. */
export function togetherCases<Req, Res>(adapter: Adapter<Req, Res>, serve: Serve<Req, Res>): void {
  describe('several limits together', () => {
    let tenant: Limiter
    let user: Limiter
    beforeEach(() => {
      tenant = stopped(5, { name: 'tenant' })
      user = stopped(2, { name: 'user' })
    })

    const BOTH = { headers: ['x-ratelimit', 'ietf'] as const }
    const limits = (ofUser: Partial<Limits<Req, Res>[number]> = {}): Limits<Req, Res> => [
      { limiter: tenant, key: () => 'acme' },
      { limiter: user, key: (req) => adapter.header(req, 'x-user') ?? 'ann', ...ofUser },
    ]
    const left = async () => [(await tenant.peek('acme')).remaining, (await user.peek('ann')).remaining]

    it('charge a request under all of them, or under none', async () => {
      const site = await serve([{ limits: limits() }])
      const bob = { headers: { 'X-User': 'bob' } }
      expect(await site.statuses([{}, {}, {}, {}, {}, bob])).toEqual([200, 200, 429, 429, 429, 200])
      expect(await left()).toEqual([2, 0])
      expect(site.handled).toBe(3)
    })

    it('are made from options of their own, and from those beside them', async () => {
      const site = await serve([
        {
          key: () => 'k',
          limits: [
            { name: 'wide', limit: 9, window: '1h' },
            { name: 'narrow', limit: 1, window: '1h', cost: () => 1 },
          ],
        },
      ])
      const replies = [await site.send(), await site.send()]
      expect(replies.map(({ status }) => status)).toEqual([200, 429])
      expect(replies.map(({ headers }) => headers['x-ratelimit-limit'])).toEqual(['1', '1'])
    })

    it('share one set of headers, where the smallest rest binds', async () => {
      const reply = await (await serve([{ limits: limits(), ...BOTH }])).send()
      expect(reply.headers).toMatchObject({ 'x-ratelimit-limit': '2', 'x-ratelimit-remaining': '1' })
      expect(ietf(reply).limit).toEqual([
        ['tenant', { r: 4, t: 60 }],
        ['user', { r: 1, t: 60 }],
      ])
    })

    it('show in a denial what was violated, and what the others have left without the request', async () => {
      const site = await serve([{ limits: limits({ cost: () => 2 }), ...BOTH }])
      await site.send()
      const { headers, text } = await site.send()
      expect(headers).toMatchObject({ 'x-ratelimit-limit': '2', 'x-ratelimit-remaining': '0' })
      expect(headers).toMatchObject({ 'retry-after': '60', ratelimit: '"tenant";r=4;t=60, "user";r=0;t=60' })
      expect(JSON.parse(text)).toMatchObject({ 'violated-policies': ['user'] })
      expect(text).not.toMatch(/acme|ann/)
    })

    it('are bound by the longest wait, and name all that deny', async () => {
      const hourly = [{ name: 'hourly', limit: 1, window: '1h' as const, key: () => 'k' }]
      const site = await serve([{ limits: [...limits({ cost: () => 2 }), ...hourly], ...BOTH }])
      await site.send()
      const { headers, text } = await site.send()
      expect(headers).toMatchObject({ 'retry-after': '3600', 'x-ratelimit-limit': '1' })
      expect(JSON.parse(text)).toMatchObject({ 'violated-policies': ['user', 'hourly'] })
    })

    it('name no policy for a ban beside a limit that denies', async () => {
      const site = await serve([{ limits: limits({ cost: () => 2 }) }])
      await site.send()
      await tenant.block('acme', '1h')
      const { headers, text } = await site.send()
      expect(headers['retry-after']).toBe('3600')
      expect(JSON.parse(text)).toMatchObject({ 'violated-policies': ['user'] })
    })

    it('show how the others stand where one is known to deny: by their store, or in this process while that fails', async () => {
      const elsewhere = undecided({ name: 'elsewhere' })
      const suspended = { name: 'suspended', limit: 0, window: '1m' as const }
      const site = await serve([
        { limits: [...limits(), { limiter: elsewhere }, suspended], headers: 'ietf' },
      ])
      const reply = await site.send()
      expect(reply.status).toBe(429)
      expect(ietf(reply).limit).toEqual([
        ['tenant', { r: 5, t: 0 }],
        ['user', { r: 2, t: 0 }],
        ['elsewhere', { r: 1, t: 0 }],
        ['suspended', { r: 0 }],
      ])
    })

    it('leave out one that is skipped, and let a request pass that all skip', async () => {
      const skip = () => true
      const one = await serve([{ limits: limits({ skip }), headers: 'ietf' }])
      expect((await one.send()).headers['ratelimit']).toBe('"tenant";r=4;t=60')
      const none = await serve([{ limits: [{ limiter: user, skip }] }])
      const reply = await none.send()
      expect([reply.status, rateLimitHeaders(reply)]).toEqual([200, []])
    })

    it.each([
      ['allow', 200],
      ['deny', 403],
      ['skip', 200],
    ] as const)('are not asked about a caller in `%s`', async (list, status) => {
      const site = await serve([{ limits: limits(), [list]: () => true }])
      const reply = await site.send()
      expect([reply.status, rateLimitHeaders(reply)]).toEqual([status, []])
      expect(await left()).toEqual([5, 2])
    })

    it('are not denied by one that only reports', async () => {
      const shadow = stopped(1, { name: 'shadow', enforce: false })
      const site = await serve([{ limits: [...limits(), { limiter: shadow, key: () => 'k' }] }])
      expect(await site.statuses([{}, {}, {}])).toEqual([200, 200, 429])
    })

    it('are each given back by their own outcome, or by that of the request', async () => {
      const ofUser = await serve([{ limits: limits({ shouldCharge: () => false }) }])
      await exchange(ofUser)
      expect(await left()).toEqual([4, 2])
      const shouldCharge = jest.fn(async () => false)
      await exchange(await serve([{ limits: limits(), shouldCharge }]))
      expect(await left()).toEqual([4, 2])
      expect(shouldCharge).toHaveBeenCalledTimes(1)
    })

    it('count refusals for the penalty of the one that denies, and of no other', async () => {
      const penalty = { after: 1, block: '1h' } as const
      user = stopped(2, { name: 'user', penalty })
      tenant = stopped(3, { name: 'tenant', penalty })
      const site = await serve([{ limits: limits() }])
      await site.statuses([{}, {}])
      expect((await site.send()).headers['retry-after']).toBe('3600')
      expect((await site.send({ headers: { 'X-User': 'bob' } })).status).toBe(200)
    })

    it('are each decided by their own `onStoreError`, where stores do not decide', async () => {
      const broken = (onStoreError: 'allow' | 'deny') => ({
        limiter: undecided({ name: onStoreError, onStoreError }),
        key: () => 'k',
      })
      const open = await serve([{ limits: [...limits(), broken('allow')] }])
      expect(await open.statuses([{}, {}, {}])).toEqual([200, 200, 429])
      const closed = await serve([
        { limits: [...limits({ key: () => 'bob' }), broken('allow'), broken('deny')] },
      ])
      expect((await closed.send()).status).toBe(503)
      expect([(await tenant.peek('acme')).remaining, (await user.peek('bob')).remaining]).toEqual([3, 2])
    })

    it('wait for async callbacks, whose errors charge nothing', async () => {
      const cost = async (req: Req) => Number(adapter.header(req, 'x-cost') ?? 1)
      const key = async () => 'ann'
      const site = await serve([{ limits: limits({ key, cost, skip: async () => false }) }])
      expect(await site.statuses([{}, { headers: { 'X-Cost': '-1' } }])).toEqual([200, 500])
      expect(site.errors).toEqual([expect.objectContaining({ code: 'INVALID_COST' })])
      expect(await left()).toEqual([4, 1])
    })

    it('report each key that went over its limit, and none of the others', async () => {
      const exceeded: string[] = []
      const onExceeded = (_req: Req, _res: Res, { key }: { key: string }) => void exceeded.push(key)
      const shadow = { limiter: stopped(1, { name: 'shadow', enforce: false }), key: () => 'shadow' }
      const site = await serve([{ limits: [...limits(), shadow], onExceeded }])
      await site.statuses([{}, {}, {}, {}])
      expect(exceeded).toEqual(['ann'])
    })

    it('hand the one that binds to onDenied', async () => {
      const onDenied = (req: Req, res: Res, { limiter, key }: { limiter: string; key: string }) =>
        adapter.answerDenial(req, res, `${limiter} ${key}`)
      const site = await serve([{ limits: limits(), onDenied }])
      await site.statuses([{}, {}])
      expect((await site.send()).text).toBe('user ann')
    })
  })
}
