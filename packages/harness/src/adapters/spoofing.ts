import type { OutgoingHttpHeaders } from 'node:http'
import type { Adapter, App, Feature } from './adapter.js'
import { itWith } from './it-with.js'
import { stopped, warningsOf } from './limits.js'
import type { Serve } from './site.js'

/** Forged values of X-Forwarded-For. */
const MADE_UP = Array.from({ length: 4 }, (_, i) => [
  `198.51.100.${i}`,
  `198.51.100.${i}, 203.0.113.9`,
  `::ffff:198.51.100.${i}`,
  `198.51.100.7:${50_000 + i}`,
  `[2001:db8:${i}::1]:443`,
  `2001:db8:${i}::1%eth0`,
  `unknown-${i}`,
  `"198.51.100.${i}"`,
]).flat()

const PATHS = ['/LOGIN', '/login/', '//login', '/login?a=1', '/%6cogin', '/./login', '/login;x', '/login#x']

const ALL = 'trusting all proxies'
const SOME = 'trusting a number of proxies'
const LISTED = 'trusting proxies by address'

/** Each with the entries that the proxies appended. The proxy that connects has the address 127.0.0.1. */
const TRUSTED: readonly (readonly [string, Feature, ProxyTrust, string])[] = [
  ['one proxy is', SOME, 1, '192.0.2.66'],
  ['two proxies are', SOME, 2, '192.0.2.66, 127.0.0.2'],
  ['the address of a proxy is', LISTED, ['127.0.0.1'], '192.0.2.66'],
  ['a network of proxies is', LISTED, ['127.0.0.0/8'], '192.0.2.66, 127.0.0.2'],
]

type ProxyTrust = App<unknown, unknown>['proxyTrust']

/** Declares the tests that every adapter has to pass about callers that forge X-Forwarded-For: none escapes its limit unless every proxy is trusted. */
export function spoofingCases<Req, Res>(adapter: Adapter<Req, Res>, serve: Serve<Req, Res>): void {
  describe('a caller that forges X-Forwarded-For', () => {
    it('gets exactly its limit if no proxy is trusted, and the header is reported once', async () => {
      const { admitted, warnings } = await attack('none', (madeUp) => ({ 'X-Forwarded-For': madeUp }))
      expect([admitted, warnings]).toEqual([5, ['FORWARDED_NOT_TRUSTED']])
    })

    // Each proxy appends the address that it sees.
    for (const [what, feature, trust, seen] of TRUSTED) {
      itWith(adapter, feature)(`gets exactly its limit if ${what} trusted`, async () => {
        const { admitted, warnings } = await attack(trust, (madeUp) => ({
          'X-Forwarded-For': `${madeUp}, ${seen}`,
        }))
        expect([admitted, warnings]).toEqual([5, []])
      })
    }

    itWith(adapter, SOME)('gets exactly its limit if its proxy sends a second header', async () => {
      const { admitted } = await attack(1, (madeUp) => ({ 'X-Forwarded-For': [madeUp, '192.0.2.66'] }))
      expect(admitted).toBe(5)
    })

    itWith(adapter, SOME)('gets exactly its limit if its proxy forwards ports', async () => {
      const { admitted } = await attack(1, (_, i) => ({ 'X-Forwarded-For': `192.0.2.66:${50_000 + i}` }))
      expect(admitted).toBe(5)
    })

    itWith(adapter, ALL)('escapes its limit if every proxy is trusted, which is reported once', async () => {
      const { admitted, warnings } = await attack('all', (madeUp) => ({ 'X-Forwarded-For': madeUp }))
      expect(admitted).toBeGreaterThan(5)
      expect(warnings).toEqual(['TRUST_PROXY_PERMISSIVE'])
    })

    it.each(['Forwarded', 'X-Real-IP', 'X-Client-IP', 'CF-Connecting-IP', 'True-Client-IP'])(
      'gains nothing from %s',
      async (name) => {
        const { admitted, warnings } = await attack('none', (_, i) => ({ [name]: `198.51.100.${i}` }))
        expect([admitted, warnings]).toEqual([5, name === 'Forwarded' ? ['FORWARDED_IGNORED'] : []])
      },
    )
  })

  describe('callers', () => {
    itWith(adapter, SOME)('that come through one trusted proxy are counted separately', async () => {
      const site = await serve([{ limit: 1, window: '1m' }], { proxyTrust: 1 })
      const from = (address: string) => ({ headers: { 'X-Forwarded-For': address } })
      const requests = [from('198.51.100.1'), from('198.51.100.2'), from('198.51.100.1')]
      expect(await site.statuses(requests)).toEqual([200, 200, 429])
    })

    it.each(PATHS)('do not bypass the limit of a route by writing its path as %s', async (path) => {
      const site = await serve([{ limit: 1, window: '1d' }], { path: '/login' })
      expect(await site.statuses([{ path: '/login' }])).toEqual([200])
      await site.send({ path })
      expect(site.handled).toBe(1)
    })
  })

  /** How many of a caller's requests are served at a limit of 5, and which warnings are reported. */
  async function attack(proxyTrust: ProxyTrust, headers: (madeUp: string, i: number) => OutgoingHttpHeaders) {
    const limiter = stopped(5)
    const warnings = warningsOf(limiter)
    const site = await serve([{ limiter }], { proxyTrust })
    await site.statuses(MADE_UP.map((madeUp, i) => ({ headers: headers(madeUp, i) })))
    return { admitted: site.handled, warnings }
  }
}
