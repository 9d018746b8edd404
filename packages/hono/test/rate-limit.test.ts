import { createLimiter, slidingLog } from '@sluice/core'
import { getConnInfo as ofNode } from '@hono/node-server/conninfo'
import { type Context, Hono } from 'hono'
import { byUser, decisionOf, rateLimit, type RateLimitOptions } from '../src/index.js'
import { expectWarnings } from '@sluice/harness/warnings'

/** Where the runtime of these tests says that callers are. */
const connInfo = () => ({ remote: { address: '192.0.2.1' } })
const twice: RateLimitOptions = { limit: 2, window: '1m', connInfo }

function appWith(...middleware: readonly ReturnType<typeof rateLimit>[]): Hono {
  return new Hono().use(...middleware)
}

describe('headers', () => {
  it.each<[string, (c: Context) => Response | Promise<Response>]>([
    ['a text', (c) => c.text('served')],
    ['JSON', (c) => c.json({ served: true })],
    ['a redirect', (c) => c.redirect('/other')],
    ['a Response of its own', () => new Response('served')],
    ['a Response that cannot be changed', () => fetch('data:text/plain,served')],
    ['what is not found', (c) => c.notFound()],
    [
      'an error',
      () => {
        throw new Error('no database')
      },
    ],
  ])('are on %s', async (_, handler) => {
    const app = appWith(rateLimit(twice)).get('/', handler)
    app.onError((_error, c) => c.text('failed', 500))
    const { headers } = await app.request('/')
    expect(headers.get('x-ratelimit-remaining')).toBe('1')
  })

  it('are on unknown paths', async () => {
    const { status, headers } = await appWith(rateLimit(twice)).request('/none')
    expect([status, headers.get('x-ratelimit-remaining')]).toEqual([404, '1'])
  })

  it.each<[string, (c: Context) => Response]>([
    ['a text', (c) => c.text('served')],
    ['a Response of its own', () => new Response('served')],
  ])('of several limiters are merged on %s', async (_, handler) => {
    const limiters = [9, 4, 7].map((limit) =>
      rateLimit({ ...twice, limit, name: `of-${limit}`, headers: 'ietf' }),
    )
    const { headers } = await appWith(...limiters)
      .get('/', handler)
      .request('/')
    expect(headers.get('ratelimit-policy')).toBe('"of-9";q=9;w=60, "of-4";q=4;w=60, "of-7";q=7;w=60')
  })

  it('replace those of limits that the handler sets itself, and no others', async () => {
    const app = appWith(rateLimit(twice)).get(
      '/',
      () => new Response('', { headers: { 'X-RateLimit-Limit': 'its own', 'X-Other': 'too' } }),
    )
    const { headers } = await app.request('/')
    expect([headers.get('x-ratelimit-limit'), headers.get('x-other')]).toEqual(['2', 'too'])
  })
})

it.each<[unknown, string]>([
  ['slow down', 'slow down'],
  [{ error: 'slow down' }, '{"error":"slow down"}'],
  [new Response('slow down', { status: 429 }), 'slow down'],
  [undefined, ''],
])('onDenied may return a body, or a response: %p', async (result, text) => {
  const app = appWith(rateLimit({ ...twice, cost: () => 3, onDenied: () => result }))
  const response = await app.request('/')
  expect([response.status, await response.text(), response.headers.get('x-ratelimit-limit')]).toEqual([
    429,
    text,
    '2',
  ])
})

describe('the decision', () => {
  it('is a variable of the context: the latest, or that of the limiter with the given name', async () => {
    const [first, second] = ['first', 'second'].map((name) => rateLimit({ ...twice, name }))
    const app = appWith(first!, second!).get('/', (c) =>
      c.json(
        [c.get('rateLimit'), c.var.rateLimit, decisionOf(c, 'first'), decisionOf(c, 'none')].map(
          (decision) => decision?.limiter ?? 'none',
        ),
      ),
    )
    expect(await (await app.request('/')).json()).toEqual(['second', 'second', 'first', 'none'])
  })

  it('is undefined for an uncounted request', async () => {
    const app = appWith(rateLimit({ ...twice, skip: () => true })).get('/', (c) =>
      c.json({ seen: c.get('rateLimit') ?? 'none' }),
    )
    expect(await (await app.request('/')).json()).toEqual({ seen: 'none' })
  })

  it('can be settled', async () => {
    const limiter = createLimiter({ policies: [slidingLog({ limit: 99, window: '1m' })] })
    const app = appWith(rateLimit({ limiter, key: () => 'k' })).get('/', async (c) => {
      await c.get('rateLimit')!.settle(40)
      return c.text('served')
    })
    await app.request('/')
    expect((await limiter.peek('k')).remaining).toBe(59)
  })
})

describe('onDenied', () => {
  const denied = { ...twice, cost: () => 3 }

  it('keeps the headers on a Response of its own, which has its own status', async () => {
    const app = appWith(rateLimit({ ...denied, onDenied: () => new Response('full', { status: 420 }) }))
    const response = await app.request('/')
    expect([response.status, await response.text()]).toEqual([420, 'full'])
    expect(response.headers.get('x-ratelimit-remaining')).toBe('2')
  })

  it('that returns nothing leaves 429 without a body', async () => {
    const app = appWith(rateLimit({ ...denied, onDenied: () => undefined }))
    const response = await app.request('/')
    expect([response.status, await response.text()]).toEqual([429, ''])
    expect(response.headers.get('cache-control')).toBe('no-store')
  })
})

describe('a denied request', () => {
  it('goes no further if there is a response already, and does not change that', async () => {
    const handler = jest.fn((c: Context) => c.text('served'))
    const app = new Hono().use(async (c, next) => {
      c.res = c.text('early')
      await next()
    })
    app.use(rateLimit({ ...twice, cost: () => 3 })).get('/', handler)
    const response = await app.request('/')
    expect([response.status, await response.text()]).toEqual([200, 'early'])
    expect(response.headers.has('cache-control')).toBe(false)
    expect(handler).not.toHaveBeenCalled()
  })
})

describe('an invalid option', () => {
  it.each<[string, unknown]>([
    ['no options', undefined],
    ['neither connInfo nor key', { limit: 1, window: '1m' }],
    ['a connInfo that is not a function', { ...twice, connInfo: { remote: {} } }],
    ['a trustProxy that is true', { ...twice, trustProxy: true }],
    ['a trustProxy below 0', { ...twice, trustProxy: -1 }],
    ['a fractional trustProxy', { ...twice, trustProxy: 1.5 }],
    ['an infinite trustProxy', { ...twice, trustProxy: Infinity }],
    ['a trustProxy that is a string', { ...twice, trustProxy: '1' }],
    ['an unknown option', { ...twice, max: 1 }],
  ])('is refused: %s', (_, options) => {
    expect(() => rateLimit(options as RateLimitOptions)).toThrow(
      expect.objectContaining({ name: 'PolicyError', code: 'INVALID_OPTION' }),
    )
  })

  it('is a connInfo left out where not each of limits has a key, and not where each has', () => {
    const keyed = { name: 'keyed', limit: 1, window: '1m', key: () => 'k' } as const
    expect(() => rateLimit({ limits: [keyed] })).not.toThrow()
    expect(() => rateLimit({ limits: [keyed, { limit: 1, window: '1m' }] })).toThrow('connInfo is needed')
  })

  it('is not a connInfo left out beside a key', () => {
    expect(() => rateLimit({ limit: 1, window: '1m', key: () => 'everybody' })).not.toThrow()
  })
})

describe('trustProxy', () => {
  it.each([
    [0, '1.1.1.1, 2.2.2.2', 'ip:192.0.2.1'],
    [1, '1.1.1.1, 2.2.2.2', 'ip:2.2.2.2'],
    [2, '1.1.1.1,2.2.2.2', 'ip:1.1.1.1'],
    [3, '1.1.1.1, 2.2.2.2', 'ip:1.1.1.1'],
    [1, '1.1.1.1, not an address', 'ip:192.0.2.1'],
    [1, '', 'ip:192.0.2.1'],
    [1, undefined, 'ip:192.0.2.1'],
  ])('of %i counts the caller in %j as %s', async (trustProxy, forwarded, key) => {
    const limiter = createLimiter({ policies: [slidingLog({ limit: 2, window: '1m' })] })
    const keys: string[] = []
    limiter.on('decision', (event) => void keys.push(event.key))
    limiter.on('warning', () => undefined)
    const app = appWith(rateLimit({ limiter, connInfo, trustProxy }))
    await app.request('/', forwarded === undefined ? {} : { headers: { 'X-Forwarded-For': forwarded } })
    expect(keys).toEqual([key])
  })
})

describe('a request without an address', () => {
  const none = () => ({ remote: {} })
  const onBun = (port?: number) => ({ port, requestIP: () => null })
  /** As in hono/bun, which is found nowhere but on Bun. */
  const ofBun = (c: Context) => ({ remote: (c.env.server ?? c.env).requestIP(c.req.raw) ?? {} })

  it.each<[string, NonNullable<RateLimitOptions['connInfo']>, object | undefined]>([
    ["that has no server, with Node's getConnInfo", ofNode, undefined],
    ["that has no server, with Bun's getConnInfo", ofBun, {}],
    ['that has no server but other bindings', ofNode, { DB: {} }],
    ['on a connInfo that knows none', none, undefined],
    ["on a connInfo that knows none, though Bun's server does", none, { port: 80, requestIP: () => ({}) }],
    ['on a Unix socket of Bun', ofBun, onBun()],
    ['on a Unix socket of Bun, with the server in env.server', ofBun, { server: onBun() }],
  ])('%s is served, and reported once', async (_, connInfo, env) => {
    const { app, seen } = appOf(connInfo)
    for (let i = 0; i < 3; i++) expect((await app.request('/', {}, env)).status).toBe(200)
    expect(seen).toEqual(['ADDRESS_UNKNOWN', 'ip:unknown', 'ip:unknown', 'ip:unknown'])
  })

  it.each([
    ['TCP of Bun', onBun(3000)],
    ['TCP of Bun, with the server in env.server', { server: onBun(3000) }],
  ])('over %s has hung up: it is not counted and goes no further', async (_, env) => {
    const { app, seen } = appOf(ofBun)
    expect(await (await app.request('/', {}, env)).text()).toBe('')
    expect(seen).toEqual([])
  })

  it('that its caller has aborted goes no further', async () => {
    const { app, seen } = appOf(ofNode)
    expect(await (await app.request('/', { signal: AbortSignal.abort() })).text()).toBe('')
    expect(seen).toEqual([])
  })

  it('whose server knows one, but connInfo fails, is an error', async () => {
    const { app } = appOf(() => {
      throw new Error('no address')
    })
    app.onError((error, c) => c.text(error.message, 500))
    const response = await app.request('/', {}, { incoming: {} })
    expect([response.status, await response.text()]).toEqual([500, 'no address'])
  })

  function appOf(connInfo: RateLimitOptions['connInfo'] & {}) {
    const limiter = createLimiter({ policies: [slidingLog({ limit: 3, window: '1m' })] })
    const seen: string[] = []
    limiter.on('decision', ({ key }) => void seen.push(key))
    limiter.on('warning', ({ code }) => void seen.push(code))
    return { app: appWith(rateLimit({ limiter, connInfo })).get('/', (c) => c.text('served')), seen }
  }
})

describe('a limiter made in a handler', () => {
  const { stackTraceLimit } = Error
  afterEach(() => {
    Error.stackTraceLimit = stackTraceLimit
  })

  type Adapter = typeof import('../src/index.js')

  it.each<[string, (app: Hono, adapter: Adapter) => unknown]>([
    ['alone', (app, { rateLimit }) => app.get('/', (c, next) => rateLimit(twice)(c, next))],
    [
      'behind middleware',
      (app, { rateLimit }) => {
        for (let i = 0; i < 5; i++) app.use((_c, next) => next())
        app.use((c, next) => rateLimit(twice)(c, next))
      },
    ],
  ])('is reported once: %s', async (_, prepare) => {
    const warned = expectWarnings(['LIMITER_IN_HANDLER'])
    // As in Node; Jest asks for more.
    Error.stackTraceLimit = 10
    const app = new Hono()
    // It is reported once for the process, which this makes another one of.
    jest.isolateModules(() => prepare(app, require('../src/index.js') as Adapter))
    for (let i = 0; i < 2; i++) await app.request('/')
    expect(warned).toHaveLength(1)
  })
})

describe('callbacks with the types of an application', () => {
  interface AppEnv {
    readonly Variables: { readonly user: { readonly id: string } }
  }

  it('get its variables, and refuse a typo', async () => {
    const key = byUser((c: Context<AppEnv>) => c.get('user').id)
    const app = new Hono<AppEnv>()
      .use((c, next) => {
        c.set('user', { id: 'ann' })
        return next()
      })
      .use(rateLimit<AppEnv>({ ...twice, key }))
      .get('/', rateLimit<AppEnv>({ ...twice, cost: (c) => c.get('user').id.length - 1 }), (c) =>
        c.text(`${c.get('user').id} ${c.get('rateLimit')?.remaining}`),
      )
    // @ts-expect-error a variable
    rateLimit<AppEnv>({ ...twice, key: byUser((c) => c.get('usr').id) })
    // @ts-expect-error a variable
    rateLimit<AppEnv>({ ...twice, cost: (c) => c.var.usr.id.length })
    expect(await (await app.request('/')).text()).toBe('ann 0')
  })
})
