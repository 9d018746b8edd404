import { fixedWindow, type Limiter, slidingLog } from '@sluice/core'
import { type RequestLimitOptions, usageHandler } from '@sluice/http'
import type { Adapter } from './adapter.js'
import type { Reply } from './client.js'
import { stopped, undecided } from './limits.js'
import type { Serve } from './site.js'

/** Declares the tests that every adapter has to pass about `usageHandler`, which answers callers with their own usage. */
export function usageCases<Req, Res>(adapter: Adapter<Req, Res>, serve: Serve<Req, Res>): void {
  describe('usage', () => {
    /** The options of a limit whose requests are answered with their usage, as each adapter takes them. */
    const usage = (options: RequestLimitOptions<Req, Res>): RequestLimitOptions<Req, Res> =>
      usageHandler<RequestLimitOptions<Req, Res>, RequestLimitOptions<Req, Res>>(options, (marked) => marked)
    const key = (req: Req): string => adapter.header(req, 'x-user') ?? 'ann'
    const read = ({ text }: Reply): unknown => JSON.parse(text)
    const entry = async (limiter: Limiter, of = 'ann') => {
      const { policies } = (await limiter.peek(of)).toJSON()
      return { limiter: limiter.name, view: 'store', policies }
    }

    it('is what a peek says, field by field, as JSON that is not kept, and charges nothing', async () => {
      const hourly = slidingLog({ limit: 9, window: '1h' })
      const limiter = stopped(5, { policies: [hourly, fixedWindow({ limit: 5, window: '1d' })] })
      await limiter.consume('ann', { cost: 2 })
      const decided = jest.fn()
      limiter.on('decision', decided)
      const site = await serve([usage({ limiter, key, cost: () => 3 })])
      const reply = await site.send()
      expect([reply.status, site.handled, site.errors]).toEqual([200, 0, []])
      expect(reply.headers).toMatchObject({
        'cache-control': 'no-store',
        'content-type': expect.stringMatching('^application/json'),
      })
      expect(read(reply)).toEqual({ limits: [await entry(limiter)] })
      expect((await limiter.peek('ann')).policies.map(({ used }) => used)).toEqual([2, 2])
      expect(decided).not.toHaveBeenCalled()
    })

    it('asks the store about a key at most once a second', async () => {
      const limiter = stopped(5)
      const peek = jest.spyOn(limiter, 'peek')
      const site = await serve([usage({ limiter, key })])
      const began = Date.now()
      const replies = await Promise.all(Array.from({ length: 100 }, () => site.send()))
      expect(replies.every(({ status }) => status === 200)).toBe(true)
      expect(peek.mock.calls.length).toBeLessThanOrEqual(2 + (Date.now() - began) / 1000)
      const before = peek.mock.calls.length
      await site.send({ headers: { 'X-User': 'bob' } })
      expect(peek.mock.calls.length).toBe(before + 1)
    })

    it('is under the policies and the plan of the caller, and otherwise of his address', async () => {
      const limiter = stopped(5)
      const pro = [slidingLog({ limit: 50, window: '1m' })]
      const policies = (req: Req) => (key(req) === 'pat' ? pro : undefined)
      const plan = async (req: Req) => (key(req) === 'pat' ? 'pro' : 'free')
      const site = await serve([usage({ limiter, policies, plan })])
      expect(read(await site.send({ headers: { 'X-User': 'pat' } }))).toMatchObject({
        plan: 'pro',
        limits: [{ policies: [{ limit: 50, remaining: 50 }] }],
      })
      await limiter.consume('ip:127.0.0.1')
      const byAddress = read(await site.send())
      expect(byAddress).toMatchObject({ plan: 'free', limits: [{ policies: [{ limit: 5 }] }] })
    })

    it('is of all limits that count the request, and of none where none does', async () => {
      const [tenant, user] = [stopped(9, { name: 'tenant' }), stopped(5, { name: 'user' })]
      const limits = [
        { limiter: tenant, key: () => 'acme' },
        { limiter: user, key, cost: () => Promise.reject(new Error('no body')) },
      ]
      const site = await serve([usage({ limits })])
      expect(read(await site.send())).toEqual({ limits: [await entry(tenant, 'acme'), await entry(user)] })
      const skipped = await serve([usage({ limiter: user, skip: () => true })])
      expect(read(await skipped.send())).toEqual({ limits: [] })
    })

    it.each([false, true])(
      'is kept from a blocked caller as his 429 tells him, with hideBlocks %s',
      async (hideBlocks) => {
        const limiter = stopped(5)
        await limiter.block('ann', '1h')
        const options = { limiter, key, hideBlocks }
        const [answer, denial] = [
          await (await serve([usage(options)])).send(),
          await (await serve([options])).send(),
        ]
        expect([answer.status, answer.text]).toEqual([429, denial.text])
        expect(answer.headers['retry-after']).toBe('3600')
      },
    )

    it('is of one process while the store does not decide, and none where it must', async () => {
      const local = await serve([usage({ limiter: undecided({ name: 'local' }), key })])
      expect(read(await local.send())).toMatchObject({
        limits: [{ view: 'process', policies: [{ limit: 1 }] }],
      })
      const denied = await serve([usage({ limiter: undecided({ onStoreError: 'deny' }), key })])
      expect((await denied.send()).status).toBe(503)
    })
  })
}
