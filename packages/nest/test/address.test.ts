import { Controller, Get, Req } from '@nestjs/common'
import { APP_GUARD } from '@nestjs/core'
import { ExpressAdapter } from '@nestjs/platform-express'
import { FastifyAdapter } from '@nestjs/platform-fastify'
import fc from 'fast-check'
import { decisionOf, ipKey, RateLimitGuard, RateLimitModule } from '../src/index.js'
import { closeApps, get, serve } from './served.js'
import { expectWarnings } from '@sluice/harness/warnings'

@Controller()
class Addresses {
  @Get()
  read(@Req() req: { readonly ip: string }): object {
    return { ip: req.ip, key: decisionOf(req)?.key }
  }
}

const addresses = fc.constantFrom('203.0.113.9', '198.51.100.2', '10.0.0.1', '127.0.0.1', '2001:db8::5')

const byAddress = (address: string): boolean => address.endsWith('.0.0.1')
const byHop = (_address: string, hop: number): boolean => hop < 2

const onExpress = (setting: string, value: unknown): ExpressAdapter => {
  const adapter = new ExpressAdapter()
  adapter.set(setting, value)
  return adapter
}

beforeEach(
  () =>
    void expectWarnings([], {
      perhaps: ['FORWARDED_NOT_TRUSTED', 'TRUST_PROXY_PERMISSIVE', 'ADDRESS_UNKNOWN'],
    }),
)
afterEach(closeApps)

describe('the address of a call is req.ip where', () => {
  it.each<[string, () => ExpressAdapter | FastifyAdapter]>([
    ['Express trusts nothing', () => new ExpressAdapter()],
    ['Express trusts every proxy', () => onExpress('trust proxy', true)],
    ['Express trusts two proxies', () => onExpress('trust proxy', 2)],
    ['Express trusts proxies by address', () => onExpress('trust proxy', ['loopback', '10.0.0.0/8'])],
    ['Express has a function', () => onExpress('trust proxy', byAddress)],
    ['Express has a function that was set by hand', () => onExpress('trust proxy fn', byHop)],
    ['Fastify trusts nothing', () => new FastifyAdapter()],
    ['Fastify trusts every proxy', () => new FastifyAdapter({ trustProxy: true })],
    ['Fastify trusts proxies by address', () => new FastifyAdapter({ trustProxy: ['loopback'] })],
    ['Fastify has a function', () => new FastifyAdapter({ trustProxy: byHop })],
  ])('%s', async (_, adapter) => {
    const { origin } = await serve(
      {
        imports: [RateLimitModule.forRoot({ limits: [{ name: 'all', limit: 999, window: '1m' }] })],
        providers: [{ provide: APP_GUARD, useExisting: RateLimitGuard }],
        controllers: [Addresses],
      },
      adapter(),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(addresses, { maxLength: 4 }), async (chain) => {
        const headers = chain.length > 0 ? { 'x-forwarded-for': chain.join(', ') } : undefined
        const { ip, key } = (await get(origin, '/', headers)).body
        expect(key).toBe(ipKey(ip))
      }),
      { numRuns: 25 },
    )
  })
})
