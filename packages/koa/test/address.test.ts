import fc from 'fast-check'
import { decisionOf, ipKey, rateLimit } from '../src/index.js'
import { appOf, get } from './apps.js'
import { expectWarnings } from '@sluice/harness/warnings'

const addresses = fc.constantFrom('203.0.113.9', '198.51.100.2', '10.0.0.1', '127.0.0.1', '2001:db8::5')
const settings = fc.record({
  proxy: fc.boolean(),
  maxIpsCount: fc.nat(3),
  proxyIpHeader: fc.constantFrom('X-Forwarded-For', 'X-Real-IP'),
})

beforeEach(
  () =>
    void expectWarnings([], {
      perhaps: ['FORWARDED_NOT_TRUSTED', 'TRUST_PROXY_PERMISSIVE', 'ADDRESS_UNKNOWN'],
    }),
)

describe('the address of a request', () => {
  it('is ctx.ip for every setting of proxies', async () => {
    await fc.assert(
      fc.asyncProperty(settings, fc.array(addresses, { maxLength: 4 }), async (setting, chain) => {
        const app = appOf(rateLimit({ limit: 9, window: '1m' }), (ctx) => {
          ctx.body = { ip: ctx.ip, key: decisionOf(ctx)?.key }
        })
        Object.assign(app, setting)
        const headers = { 'X-Forwarded-For': chain.join(', '), 'X-Real-IP': chain[0] ?? '' }
        const { body } = await get(app).set(chain.length > 0 ? headers : {})
        expect(body.key).toBe(ipKey(body.ip))
      }),
    )
  })

  it('is what was set as ctx.request.ip', async () => {
    const app = appOf(
      (ctx, next) => {
        ctx.request.ip = '203.0.113.7'
        return next()
      },
      rateLimit({ limit: 9, window: '1m' }),
      (ctx) => void (ctx.body = decisionOf(ctx)?.key),
    )
    expect((await get(app)).text).toBe('ip:203.0.113.7')
  })
})
