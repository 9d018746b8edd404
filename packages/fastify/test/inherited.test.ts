import { createLimiter, type Keyspace, memoryStore, slidingLog, type Store } from '@sluice/core'
import { guard } from '@sluice/core/store'
import { rateLimit, type RateLimitOptions } from '../src/index.js'
import { ask, closeApps, serve, statuses } from './served.js'

afterEach(closeApps)

const once = { limit: 1, window: '1m' } as const
const served = () => 'served'
const silence = () => new Promise<never>(() => {})

describe('a route with a limit of its own under a plugin', () => {
  it("counts in the plugin's store, shared by every process", async () => {
    const store = memoryStore()
    const start = () =>
      serve(async (app) => {
        await app.register(rateLimit, { name: 'api', limit: 99, window: '1m', store })
        app.post('/login', { config: { rateLimit: { ...once } } }, served)
        app.get('/search', { config: { rateLimit: { ...once } } }, served)
      })
    const [one, other] = [await start(), await start()]
    expect((await ask(one, '/login', { method: 'POST' })).status).toBe(200)
    expect((await ask(other, '/login', { method: 'POST' })).status).toBe(429)
    expect(await statuses(other, '/search')).toEqual([200])
    expect(await statuses(one, '/search')).toEqual([429])
  })

  it("counts several limits together in the plugin's store, by its key", async () => {
    const store = memoryStore()
    const app = await serve(async (app) => {
      await app.register(rateLimit, { name: 'api', store, key: () => 'k', headers: 'ietf' })
      const limits = [
        { ...once, name: 'tenant', limit: 9 },
        { ...once, name: 'user' },
      ]
      app.get('/', { config: { rateLimit: { limits } } }, served)
    })
    expect((await ask(app, '/')).headers.get('ratelimit')).toMatch(/^"tenant";r=8;t=\d+, "user";r=0;t=\d+$/)
    expect(await statuses(app, '/')).toEqual([429])
    expect(store.size).toBe(2)
  })

  it('counts in the store of a plugin without a limit', async () => {
    const store = memoryStore()
    const app = await serve(async (app) => {
      await app.register(rateLimit, { store })
      app.get('/', served).get('/own', { config: { rateLimit: { ...once } } }, served)
    })
    expect(await statuses(app, '/', '/', '/own', '/own')).toEqual([200, 200, 200, 429])
    expect(store.size).toBe(1)
  })

  it("uses the plugin's key, onDenied and headers", async () => {
    const app = await serve(async (app) => {
      await app.register(rateLimit, {
        key: (request) => request.headers['x-user'] as string,
        headers: 'ietf',
        onDenied: () => ({ slow: 'down' }),
      })
      app.get('/', { config: { rateLimit: { ...once } } }, served)
    })
    const as = (user: string) => ask(app, '/', { headers: { 'x-user': user } })
    expect([(await as('ann')).status, (await as('bob')).status]).toEqual([200, 200])
    const denied = await as('ann')
    expect([denied.status, await denied.json()]).toEqual([429, { slow: 'down' }])
    expect([denied.headers.has('ratelimit'), denied.headers.has('x-ratelimit-limit')]).toEqual([true, false])
  })

  it("counts in the store of the plugin's limiter, and is named after it", async () => {
    const store = memoryStore()
    const limiter = createLimiter({ name: 'api', policies: [slidingLog({ limit: 99, window: '1m' })], store })
    const start = () =>
      serve(async (app) => {
        await app.register(rateLimit, { limiter, headers: 'ietf' })
        app.get('/own', { config: { rateLimit: { ...once } } }, served)
      })
    const [one, other] = [await start(), await start()]
    expect((await ask(one, '/own')).headers.get('ratelimit-policy')).toBe('"api GET /own";q=1;w=60')
    expect(await statuses(other, '/own')).toEqual([429])
    expect(store.size).toBe(1)
  })

  it("has the onStoreError and enforce of the plugin's limiter", async () => {
    const silent: Store = {
      guard,
      now: () => performance.now() * 1000,
      keyspace: (_, policies) => ({ policies, decide: silence }) as unknown as Keyspace,
      close: () => {},
    }
    const policies = [slidingLog({ limit: 99, window: '1m' })]
    const failing = { name: 'api', policies, store: silent, deadline: '1ms' } as const
    const app = await serve(async (app) => {
      const limiter = createLimiter({ ...failing, onStoreError: 'deny', enforce: true })
      await app.register(rateLimit, { limiter })
      app.get('/own', { config: { rateLimit: { ...once } } }, served)
      app.register(async (child) => {
        await child.register(rateLimit, { limiter: createLimiter({ policies, enforce: false }) })
        child.get('/shadow', { config: { rateLimit: { ...once } } }, served)
      })
    })
    expect(await statuses(app, '/own', '/shadow', '/shadow')).toEqual([503, 200, 200])
  })

  it.each<[string, RateLimitOptions]>([
    ['options', { ...once, key: () => 'own', headers: 'x-ratelimit', name: 'own', store: memoryStore() }],
    [
      'limiter',
      { limiter: createLimiter({ policies: [slidingLog(once)] }), key: () => 'own', headers: 'x-ratelimit' },
    ],
  ])('keeps %s of its own', async (_, own) => {
    const store = memoryStore()
    const app = await serve(async (app) => {
      await app.register(rateLimit, { store, key: () => 'k', headers: 'ietf', onStoreError: 'deny' })
      app.get('/', { config: { rateLimit: own } }, served)
    })
    expect((await ask(app, '/')).headers.get('x-ratelimit-limit')).toBe('1')
    expect(store.size).toBe(0)
  })

  it('inherits from the innermost of the plugins around it', async () => {
    const app = await serve(async (app) => {
      await app.register(rateLimit, { headers: 'ietf', key: () => 'all' })
      app.register(async (child) => {
        await child.register(rateLimit, { headers: false })
        child.get('/child', { config: { rateLimit: { ...once } } }, served)
      })
      app.get('/', { config: { rateLimit: { ...once } } }, served)
    })
    expect((await ask(app, '/child')).headers.has('ratelimit')).toBe(false)
    expect((await ask(app, '/')).headers.has('ratelimit')).toBe(true)
  })

  it('is named after method and path in the store, even long or non-ASCII ones', async () => {
    const names: (string | null)[] = []
    const app = await serve(async (app) => {
      await app.register(rateLimit, { name: 'api', store: memoryStore(), headers: 'ietf' })
      for (const path of ['/short', `/${'long'.repeat(20)}`, '/straße'])
        app.get(path, { config: { rateLimit: { ...once } } }, served)
    })
    for (const path of ['/short', `/${'long'.repeat(20)}`, '/straße'])
      names.push((await ask(app, path)).headers.get('ratelimit-policy'))
    expect(names).toEqual([
      '"api GET /short";q=1;w=60',
      expect.stringMatching(/^"api GET \/longlong[a-z]{23} [\da-f]{16}";/),
      expect.stringMatching(/^"api GET \/stra\?e [\da-f]{16}";/),
    ])
  })

  it.each([
    ['without await, before the plugin is loaded', false],
    ['after the plugin was awaited', true],
  ])(
    'is shared under the name of the first route registered %s, whichever is served first',
    async (_, awaits) => {
      const store = memoryStore()
      const start = () =>
        serve(async (app) => {
          const loaded = app.register(rateLimit, { name: 'api', store, headers: 'ietf' })
          if (awaits) await loaded
          const shared = { limit: 3, window: '1m' } as const
          app.get('/apples', served)
          for (const path of ['/search', '/about', '/'])
            app.get(path, { config: { rateLimit: shared } }, served)
        })
      const all = [await start(), await start(), await start()]
      const paths = ['/search', '/about', '/', '/about']
      const replies = []
      for (const [i, app] of all.entries()) {
        for (const j of paths.keys()) replies.push(await ask(app, paths[(i + j) % paths.length]!))
      }
      expect(replies.filter(({ ok }) => ok)).toHaveLength(3)
      const names = new Set(replies.map(({ headers }) => headers.get('ratelimit-policy')))
      expect([...names]).toEqual(['"api GET /search";q=3;w=60'])
    },
  )

  it.each([
    ['a store', { store: memoryStore() }],
    ['no store', {}],
  ])(
    "of one options object in two contexts takes each context's key, and is one limiter, with %s",
    async (_, kept) => {
      const shared = { limit: 2, window: '1m' } as const
      const keyBy = (name: string) => ({
        key: (request: { headers: object }) => Object(request.headers)[name],
      })
      const app = await serve(async (app) => {
        await app.register(rateLimit, { name: 'api', ...kept, ...keyBy('x-user') })
        app.get('/user', { config: { rateLimit: shared } }, served)
        app.register(async (child) => {
          await child.register(rateLimit, { name: 'tenants', ...keyBy('x-tenant') })
          child.get('/tenant', { config: { rateLimit: shared } }, served)
        })
      })
      const of = async (path: string, user: string, tenant: string) =>
        (await ask(app, path, { headers: { 'x-user': user, 'x-tenant': tenant } })).status
      expect([await of('/user', 'ann', 't'), await of('/user', 'ann', 't')]).toEqual([200, 200])
      expect([await of('/user', 'ann', 't'), await of('/user', 'bob', 't')]).toEqual([429, 200])
      expect([await of('/tenant', 'ann', 't'), await of('/tenant', 'ann', 'ann')]).toEqual([200, 429])
    },
  )

  it('counts in each application for itself, although both have one options object', async () => {
    const shared = { ...once }
    const start = () =>
      serve(async (app) => {
        await app.register(rateLimit, {})
        app.get('/', { config: { rateLimit: shared } }, served)
      })
    expect([await statuses(await start(), '/', '/'), await statuses(await start(), '/')]).toEqual([
      [200, 429],
      [200],
    ])
  })

  it('with options that cannot work stops the start, although the plugin is not awaited', async () => {
    const start = serve((app) => {
      app.register(rateLimit, { store: memoryStore() })
      app.get('/', { config: { rateLimit: { limit: -1, window: '1m' } } }, served)
    })
    await expect(start).rejects.toMatchObject({ code: 'INVALID_LIMIT' })
  })
})
