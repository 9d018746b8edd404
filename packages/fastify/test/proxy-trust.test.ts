import { createLimiter, slidingLog } from '@sluice/core'
import type { FastifyServerOptions } from 'fastify'
import { rateLimit } from '../src/index.js'
import { ask, closeApps, serve } from './served.js'
import { expectWarnings } from '@sluice/harness/warnings'

/** Not in Fastify's types any more. */
const NUMBER = 1 as unknown as string

afterEach(closeApps)

describe('trustProxy', () => {
  it.each<[string, FastifyServerOptions['trustProxy'], string[]]>([
    ['is left at its default', undefined, ['FORWARDED_NOT_TRUSTED']],
    ['is false', false, ['FORWARDED_NOT_TRUSTED']],
    ['is a number, with which Fastify trusts no proxy', NUMBER, ['FORWARDED_NOT_TRUSTED']],
    ['names other proxies', '10.0.0.0/8', ['FORWARDED_NOT_TRUSTED']],
    ['is true', true, ['TRUST_PROXY_PERMISSIVE']],
    ['is a function that trusts every address', () => true, ['TRUST_PROXY_PERMISSIVE']],
    ['names every address', ['0.0.0.0/1', '128.0.0.0/1'], ['TRUST_PROXY_PERMISSIVE']],
    ['names the proxy', '127.0.0.1', []],
    ['is a list of proxies', ['10.0.0.0/8', 'loopback'], []],
    ['is a function that knows the proxy', (address) => address === '127.0.0.1', []],
    ['is a function that counts', (_address, hop) => hop < 1, []],
  ])('that %s', async (_, trustProxy, reported) => {
    const warnings: string[] = []
    const limiter = createLimiter({ policies: [slidingLog({ limit: 9, window: '1m' })] })
    limiter.on('warning', ({ code }) => void warnings.push(code))
    const app = await serve(
      (app) => app.register(rateLimit, { limiter }),
      trustProxy === undefined ? {} : { trustProxy },
    )
    for (let i = 0; i < 2; i++) await ask(app, '/', { headers: { 'X-Forwarded-For': '198.51.100.1' } })
    expect(warnings).toEqual(reported)
  })

  it('as a number lets no caller choose its address', async () => {
    const app = await serve((app) => app.register(rateLimit, { limit: 1, window: '1m' }), {
      trustProxy: NUMBER,
    })
    expectWarnings([], { perhaps: ['FORWARDED_NOT_TRUSTED'] })
    const status = async (address: string) =>
      (await ask(app, '/', { headers: { 'X-Forwarded-For': address } })).status
    expect([await status('198.51.100.1'), await status('198.51.100.2')]).toEqual([404, 429])
  })
})
