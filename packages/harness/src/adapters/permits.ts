import { createSemaphore, type Limiter, type Semaphore } from '@sluice/core'
import type { Adapter, Answer } from './adapter.js'
import { GET, sendRaw } from './client.js'
import { closedGate, endless, hangUp, received } from './interruptions.js'
import { stopped, undecided } from './limits.js'
import { until } from '../redis/until.js'
import type { Serve } from './site.js'

/** Declares the tests that every adapter has to pass about limits beside a semaphore, whose permit a request holds until its response has ended. */
export function permitCases<Req, Res>(adapter: Adapter<Req, Res>, serve: Serve<Req, Res>): void {
  describe('limits beside a semaphore', () => {
    let limiter: Limiter
    let semaphore: Semaphore
    beforeEach(() => {
      limiter = stopped(10)
      semaphore = createSemaphore({ limit: 1, name: 'at once' })
    })
    const limited = (answer?: () => Answer | Promise<Answer>) =>
      serve([{ limits: [{ limiter }, { semaphore }], key: () => 'k' }], answer && { answer })
    const left = async () => [semaphore.inUse, (await limiter.peek('k')).remaining]

    it('charge nothing where no permit is free, and release it when the response has ended', async () => {
      const gate = closedGate()
      async function* body() {
        yield 'first'
        await gate.opened
        yield 'last'
      }
      const site = await limited(() => ({ body: body() }))
      const closed = site.nextClosed()
      const socket = sendRaw(site.port, GET)
      await received(socket, 'first')
      expect(await left()).toEqual([1, 9])
      const denied = await site.send()
      expect([denied.status, denied.headers['retry-after']]).toEqual([429, '1'])
      expect(await left()).toEqual([1, 9])
      gate.open()
      await closed
      socket.destroy()
      await site.idle()
      expect(await left()).toEqual([0, 9])
    })

    it('release it where a limit denies, and where the handler fails', async () => {
      let fails = true
      const site = await limited(() => {
        if (fails) throw new Error('no answer')
        return { body: 'served' }
      })
      await site.send().catch(() => {})
      await site.idle()
      expect(await left()).toEqual([0, 9])
      fails = false
      await limiter.charge('k', { cost: 9 })
      expect((await site.send()).status).toBe(429)
      await site.idle()
      expect(await left()).toEqual([0, 0])
    })

    it('release it where the caller hangs up before the response, or in the middle of it', async () => {
      const gate = closedGate()
      const handling = closedGate()
      const site = await limited(async () => {
        handling.open()
        await gate.opened
        return { body: 'too late' }
      })
      await hangUp(site, 'destroy', handling, gate)
      expect(await left()).toEqual([0, 9])
      const streaming = await limited(() => ({ body: endless() }))
      const closed = streaming.nextClosed()
      const socket = sendRaw(streaming.port, GET)
      await received(socket, 'xxx')
      socket.destroy()
      await closed
      await streaming.idle()
      expect(await left()).toEqual([0, 8])
    })

    it('release those of pipelined requests whose caller hangs up before the first is answered', async () => {
      semaphore = createSemaphore({ limit: 2, name: 'at once' })
      const gate = closedGate()
      const site = await limited(async () => {
        await gate.opened
        return { body: 'too late' }
      })
      const closed = site.nextClosed()
      const socket = sendRaw(site.port, GET + GET)
      await until('both requests to be handled', () => site.handled === 2)
      expect(await left()).toEqual([2, 8])
      socket.destroy()
      await closed
      gate.open()
      await site.idle()
      expect(await left()).toEqual([0, 8])
    })

    it('release it where the store of a limit denies, in an outage', async () => {
      const broken = undecided({ name: 'broken', onStoreError: 'deny' })
      const site = await serve([{ limits: [{ limiter: broken }, { semaphore }], key: () => 'k' }])
      expect((await site.send()).status).toBe(503)
      expect(semaphore.inUse).toBe(0)
    })

    it('go on without one in shadow mode, and count', async () => {
      const limits = [{ name: 'shadowed', limit: 2, window: '1d' }, { semaphore }] as const
      const site = await serve([{ limits, key: () => 'k', enforce: false }])
      await semaphore.acquire('k')
      for (const left of ['1', '0', '0']) {
        const { status, headers } = await site.send()
        expect([status, headers['x-ratelimit-remaining']]).toEqual([200, left])
      }
      await site.idle()
      expect(semaphore.inUse).toBe(1)
    })

    it('are refused without one that counts, and with options that a permit does not have', async () => {
      await expect(serve([{ limits: [{ semaphore }] }])).rejects.toThrow('one that counts')
      const cost = () => 1
      await expect(serve([{ limits: [{ limiter }, { semaphore, cost }] }])).rejects.toThrow('cost')
    })
  })
}
