import fc from 'fast-check'
import fastify, { type FastifyServerOptions } from 'fastify'
import { decisionOf, ipKey, rateLimit } from '../src/index.js'
import { expectWarnings } from '@sluice/harness/warnings'

const addresses = fc.constantFrom('203.0.113.9', '198.51.100.2', '10.0.0.1', '127.0.0.1', '2001:db8::5')
const settings = fc.constantFrom<FastifyServerOptions['trustProxy']>(
  false,
  true,
  '127.0.0.1',
  'loopback',
  ['loopback', '10.0.0.0/8'],
  (address) => address.endsWith('.0.0.1'),
  (_address, hop) => hop < 2,
)

beforeEach(
  () =>
    void expectWarnings([], {
      perhaps: ['FORWARDED_NOT_TRUSTED', 'TRUST_PROXY_PERMISSIVE', 'ADDRESS_UNKNOWN'],
    }),
)

describe('the address of a request', () => {
  it('is request.ip for every setting of proxies', async () => {
    await fc.assert(
      fc.asyncProperty(settings, fc.array(addresses, { maxLength: 4 }), async (trustProxy, chain) => {
        const app = fastify({ trustProxy: trustProxy! })
        await app.register(rateLimit, { limit: 9, window: '1m' })
        app.get('/', (asked) => ({ ip: asked.ip, key: decisionOf(asked)?.key }))
        const headers = chain.length > 0 ? { 'x-forwarded-for': chain.join(', ') } : {}
        const { ip, key } = (await app.inject({ url: '/', headers })).json()
        expect(key).toBe(ipKey(ip))
        await app.close()
      }),
    )
  })
})
