import Router from '@koa/router'
import { createLimiter, type Limiter, slidingLog } from '@sluice/core'
import Koa, { type Context, type Middleware } from 'koa'
import { byApiKey, byUser, decisionOf, rateLimit } from '../src/index.js'
import { appOf, get, limit, serve } from './apps.js'
import { expectWarnings } from '@sluice/harness/warnings'

describe('rateLimit', () => {
  it.each<[string, (ctx: Context) => unknown, string]>([
    ['text', () => 'slow down', 'slow down'],
    ['an object', async () => ({ error: 'slow down' }), '{"error":"slow down"}'],
    ['nothing, where it has set the body', (ctx) => void (ctx.body = 'set'), 'set'],
  ])('sends what onDenied returns: %s', async (_, onDenied, body) => {
    const app = appOf(rateLimit({ limit: 1, window: '1m', cost: () => 2, onDenied }))
    const { status, text } = await get(app)
    expect([status, text]).toEqual([429, body])
  })

  it.each<[string, unknown, (ctx: Context) => unknown, string]>([
    ['a text', 'early', () => ({ error: 'slow down' }), '{"error":"slow down"}'],
    ['JSON', { early: true }, () => 'slow down', 'slow down'],
    ['a text, for one that it sets', 'early', (ctx) => ((ctx.body = 'set'), ctx), 'set'],
    ['a text, for nothing', 'early', () => {}, 'Too Many Requests'],
  ])(
    'sends what onDenied returns in place of a body that was set before: %s',
    async (_, early, onDenied, body) => {
      const before: Middleware = (ctx, next) => {
        ctx.body = early
        return next()
      }
      const app = appOf(before, rateLimit({ limit: 1, window: '1m', cost: () => 2, onDenied }))
      const { status, text, type } = await get(app)
      expect([status, text]).toEqual([429, body])
      expect(type).toBe(body.startsWith('{') ? 'application/json' : 'text/plain')
    },
  )

  it('has a name for stack traces and profiles', () => {
    expect(rateLimit({ limit: 1, window: '1m' }).name).toBe('rateLimit')
  })

  it('passes on before it returns with a memory store', async () => {
    const seen: string[] = []
    const around: Middleware = (_ctx, next) => {
      const passed = next()
      seen.push('returned')
      return passed
    }
    await get(appOf(around, rateLimit({ limit: 1, window: '1m' }), () => void seen.push('handled')))
    expect(seen).toEqual(['handled', 'returned'])
  })

  it('limits only its route', async () => {
    const router = new Router().get('/limited', rateLimit({ limit: 1, window: '1m' }), serve)
    const app = appOf(router.get('/free', serve).routes() as Middleware)
    await get(app, '/limited')
    expect((await get(app, '/limited')).status).toBe(429)
    expect((await get(app, '/free')).headers).not.toHaveProperty('x-ratelimit-limit')
  })

  it('limits each API key separately', async () => {
    const app = appOf(rateLimit({ limit: 1, window: '1m', key: byApiKey() }), serve)
    const as = async (apiKey: string) => (await get(app).set('X-API-Key', apiKey)).status
    expect([await as('one'), await as('two'), await as('one')]).toEqual([200, 200, 429])
  })

  it('accepts an application whose state has a type', async () => {
    const app = new Koa<{ user: string }>()
    app.use(rateLimit({ limit: 9, window: '1m' })).use((ctx) => {
      ctx.body = String(ctx.state.rateLimit?.remaining)
    })
    expect((await get(app)).text).toBe('8')
  })

  it('is reported once when it is made for each request', async () => {
    const warned = expectWarnings(['LIMITER_IN_HANDLER'])
    const app = appOf((ctx, next) => rateLimit({ limit: 1, window: '1m' })(ctx, next))
    for (let i = 0; i < 3; i++) await get(app)
    expect(warned).toHaveLength(1)
  })
})

describe('callbacks with the types of an application', () => {
  interface State {
    readonly user: { readonly id: string }
  }
  interface Extra {
    readonly tenant: string
  }

  it('get its state and context, and refuse a typo', () => {
    const limits = { limit: 9, window: '1m' } as const
    new Koa<State, Extra>()
      .use(rateLimit<State>({ ...limits, key: byUser((ctx) => ctx.state.user.id) }))
      .use(rateLimit<State, Extra>({ ...limits, cost: (ctx) => ctx.tenant.length }))
      .use((ctx) => void ctx.state.rateLimit?.remaining)
    new Router<State>().get('/', rateLimit<State>(limits), (ctx) => void ctx.state.user.id)
    // @ts-expect-error state
    rateLimit<State>({ ...limits, key: byUser((ctx) => ctx.state.usr.id) })
    // @ts-expect-error context
    rateLimit<State, Extra>({ ...limits, cost: (ctx) => ctx.tennant.length })
    // @ts-expect-error Koa's own
    rateLimit<State>({ ...limits, key: (ctx) => ctx.ipp })
    expect(rateLimit<State>(limits)).toHaveLength(2)
  })
})

describe('ctx.state.rateLimit', () => {
  it('is the decision, for example to settle it', async () => {
    const limiter = ofNine()
    const app = appOf(rateLimit({ limiter, key: () => 'k' }), async (ctx) => {
      await ctx.state.rateLimit.settle(4)
    })
    await get(app)
    expect((await limiter.peek('k')).remaining).toBe(5)
  })

  it('is set for middleware around the limiter, even if it denies', async () => {
    const seen: unknown[] = []
    const around: Middleware = async (ctx, next) => {
      await next()
      seen.push(ctx.state.rateLimit.allowed)
    }
    const app = appOf(around, rateLimit({ limit: 1, window: '1m' }), serve)
    await get(app)
    await get(app)
    expect(seen).toEqual([true, false])
  })

  it('is undefined on a skipped request', async () => {
    const look = jest.fn()
    await get(appOf(rateLimit({ limit: 1, window: '1m', skip: () => true }), (ctx) => look(ctx.state)))
    expect(look).toHaveBeenCalledWith({})
  })

  it('is the latest of several, and decisionOf finds the others', async () => {
    const look = jest.fn()
    const app = appOf(limit('first', 9), limit('second', 9), (ctx) => {
      look(ctx.state.rateLimit.limiter, decisionOf(ctx, 'first')?.limiter, decisionOf(ctx, 'none'))
    })
    await get(app)
    expect(look).toHaveBeenCalledWith('second', 'first', undefined)
  })
})

describe('a proxy header of another name', () => {
  const proxyIpHeader = 'X-Real-IP'

  it('names the callers', async () => {
    const app = appOf(rateLimit({ limit: 1, window: '1m' }), serve)
    Object.assign(app, { proxy: true, maxIpsCount: 1, proxyIpHeader })
    const from = async (address: string) => (await get(app).set(proxyIpHeader, address)).status
    expect([await from('198.51.100.1'), await from('198.51.100.2'), await from('198.51.100.1')]).toEqual([
      200, 200, 429,
    ])
  })

  it.each([
    [1, []],
    [0, ['TRUST_PROXY_PERMISSIVE']],
  ])('with a maxIpsCount of %i is reported as %j', async (maxIpsCount, expected) => {
    const limiter = ofNine()
    const warnings: string[] = []
    limiter.on('warning', ({ code }) => void warnings.push(code))
    const app = appOf(rateLimit({ limiter }), serve)
    Object.assign(app, { proxy: true, maxIpsCount, proxyIpHeader })
    await get(app).set(proxyIpHeader, '198.51.100.1')
    expect(warnings).toEqual(expected)
  })
})

function ofNine(): Limiter {
  return createLimiter({ policies: [slidingLog({ limit: 9, window: '1m' })] })
}
