import type { Limiter } from '@sluice/core'
import type { RequestLimitOptions } from '@sluice/http'
import type { Adapter, Answer } from './adapter.js'
import { stopped, warningsOf } from './limits.js'
import type { Serve, Site } from './site.js'

/** Declares the tests that every adapter has to pass about `shouldCharge`, by which a request's outcome decides whether its units are given back. */
export function chargeCases<Req, Res>(adapter: Adapter<Req, Res>, serve: Serve<Req, Res>): void {
  describe('charge by outcome', () => {
    let limiter: Limiter
    beforeEach(() => {
      limiter = stopped(4)
    })

    it.each([
      [200, 3],
      [404, 4],
      [500, 4],
    ])('gets the status %i of the response', async (status, left) => {
      const shouldCharge = (_req: Req, res: Res) => adapter.status(res) < 400
      const site = await limited(shouldCharge, () => ({ status, body: 'done' }))
      await exchange(site)
      expect(await remaining()).toBe(left)
    })

    it('may be async', async () => {
      await exchange(await limited(async () => false))
      expect(await remaining()).toBe(4)
    })

    it('is not called for a denial', async () => {
      const shouldCharge = jest.fn(() => false)
      const site = await serve([{ limiter, key: () => 'k', cost: () => 5, shouldCharge }])
      await exchange(site)
      expect(shouldCharge).not.toHaveBeenCalled()
    })

    it.each<[string, () => boolean | Promise<boolean>]>([
      ['throws', () => fail()],
      ['rejects', async () => fail()],
    ])('keeps the charge and is reported when it %s', async (_, shouldCharge) => {
      const warnings = warningsOf(limiter)
      const site = await limited(shouldCharge)
      expect((await exchange(site)).status).toBe(200)
      expect(await remaining()).toBe(3)
      expect(warnings).toEqual(['CHARGE_FAILED'])
    })

    function limited(
      shouldCharge: RequestLimitOptions<Req, Res>['shouldCharge'] & {},
      answer?: () => Answer | Promise<Answer>,
    ) {
      return serve([{ limiter, key: () => 'k', shouldCharge }], answer && { answer })
    }

    async function remaining(): Promise<number> {
      return (await limiter.peek('k')).remaining
    }
  })
}

/** Sends a request and waits for the response and for what the server does after it. Returns the reply. */
export async function exchange(site: Site) {
  const closed = site.nextClosed()
  const reply = await site.send()
  await closed
  return reply
}

/** Throws, as a handler that fails. */
function fail(): never {
  throw new Error('no status')
}
