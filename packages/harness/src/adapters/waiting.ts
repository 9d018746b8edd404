import { createLimiter, gcra, memoryStore } from '@sluice/core'
import { until } from '../redis/until.js'
import type { Adapter } from './adapter.js'
import { GET, sendRaw } from './client.js'
import { closedGate, hangUp } from './interruptions.js'
import { itWith } from './it-with.js'
import type { Serve } from './site.js'

/** Declares the tests that every adapter has to pass about `maxWait`: requests over the limit wait for their turns, and give them back when the caller hangs up. */
export function waitingCases<Req, Res>(adapter: Adapter<Req, Res>, serve: Serve<Req, Res>): void {
  describe('maxWait', () => {
    const evenly = (limit: number, window: string) =>
      createLimiter({ name: 'api', policies: [gcra({ limit, window, burst: 1 })], store: memoryStore() })

    it('lets requests over the limit wait for their turns', async () => {
      const site = await serve([{ limiter: evenly(50, '1s'), maxWait: '10s' }])
      const replies = await Promise.all([site.send(), site.send(), site.send()])
      expect(replies.map(({ status }) => status)).toEqual([200, 200, 200])
      expect(site.handled).toBe(3)
    })

    it('answers 429 at once where the turn would be later', async () => {
      const site = await serve([{ limiter: evenly(1, '1h'), maxWait: '10m' }])
      expect(await site.statuses([{}, {}])).toEqual([200, 429])
    })

    it('gives the place of a caller that hangs up back, and the request goes no further', async () => {
      const limiter = evenly(1, '1h')
      const site = await serve([{ limiter, key: () => 'k', maxWait: '1d' }])
      await site.send()
      const closed = site.nextClosed()
      const socket = sendRaw(site.port, GET)
      await until('the request to wait', () => limiter.waiting === 1)
      socket.destroy()
      await closed
      await until('its place to be free', () => limiter.waiting === 0)
      await site.idle()
      expect(site.handled).toBe(1)
      expect((await limiter.peek('k')).retryAfterMs).toBeLessThanOrEqual(60 * 60 * 1000)
      expect(site.errors).toEqual([])
    })

    itWith(adapter, 'hang-ups of pipelined requests')(
      'gives the places of pipelined requests back',
      async () => {
        const limiter = evenly(1, '1h')
        const site = await serve([{ limiter, key: () => 'k', maxWait: '1d' }])
        await site.send()
        const closed = site.nextClosed()
        const socket = sendRaw(site.port, GET + GET)
        await until('both requests to wait', () => limiter.waiting === 2)
        socket.destroy()
        await closed
        await site.idle()
        expect([limiter.waiting, site.handled, site.errors]).toEqual([0, 1, []])
      },
    )

    it('takes no place for a caller that has hung up before, and his request goes no further', async () => {
      const limiter = evenly(1, '1h')
      const [gate, reached] = [closedGate(), closedGate()]
      const key = async (): Promise<string> => {
        reached.open()
        await gate.opened
        return 'k'
      }
      const site = await serve([{ limiter, key, maxWait: '1d' }])
      await hangUp(site, 'destroy', reached, gate)
      expect([site.handled, limiter.waiting, (await limiter.peek('k')).remaining]).toEqual([0, 0, 1])
      expect(site.errors).toEqual([])
    })
  })
}
