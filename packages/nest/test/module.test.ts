import { Controller, type DynamicModule, Get, Inject, Injectable, Module, UseGuards } from '@nestjs/common'
import { APP_GUARD, REQUEST } from '@nestjs/core'
import { Test } from '@nestjs/testing'
import {
  createLimiter,
  type Limiter,
  memoryStore,
  type MemoryStore,
  PolicyError,
  slidingLog,
  type Store,
} from '@sluice/core'
import {
  byUser,
  type Call,
  InjectLimiter,
  type KeyProvider,
  limiterToken,
  type NamedLimiterOptions,
  OverrideRateLimit,
  RateLimit,
  RateLimitGuard,
  RateLimitModule,
  type RateLimitModuleOptions,
  SkipRateLimit,
} from '../src/index.js'
import { usageHandler } from '@sluice/http'
import { Limits } from '../src/limits.js'
import { closeApps, get, PLATFORMS, serve } from './served.js'

afterEach(closeApps)

const policies = [slidingLog({ limit: 1, window: '1m' })]

@Injectable()
class Users implements KeyProvider {
  private readonly names = new Map([
    ['t1', 'ann'],
    ['t2', 'ann'],
    ['t3', 'bob'],
  ])

  async key({ req }: Call) {
    return this.names.get(req.headers.token)!
  }
}

/** Is made anew for each request, as what it needs is. */
@Injectable()
class OfRequest implements KeyProvider {
  constructor(@Inject(REQUEST) private readonly request: { readonly url: string }) {}

  key() {
    return this.request.url
  }
}

@Module({ providers: [Users], exports: [Users] })
class UsersModule {}

@Controller()
@UseGuards(RateLimitGuard)
class Site {
  @Get() get() {}
}

@Controller()
class Unguarded {
  @Get() get() {}
}

describe.each(PLATFORMS)('the key on %s', (_, http) => {
  it.each<[string, RateLimitModuleOptions]>([
    ['a provider of another module', { limits: [{ limit: 1, window: '1m', key: Users }] }],
    ['the default of the module', { limits: [{ limit: 1, window: '1m' }], key: Users }],
  ])('comes from %s', async (_, options) => {
    const metadata = { imports: [RateLimitModule.forRoot(options), UsersModule], controllers: [Site] }
    expect(await ofTokens((await serve(metadata, http())).origin)).toEqual([200, 429, 200])
  })

  it('comes from a dependency of a factory', async () => {
    const useFactory = (users: Users) => ({
      limits: [{ limit: 1, window: '1m' as const, key: (call: Call) => users.key(call) }],
    })
    const options = RateLimitModule.forRootAsync({ imports: [UsersModule], inject: [Users], useFactory })
    expect(await ofTokens((await serve({ imports: [options], controllers: [Site] }, http())).origin)).toEqual(
      [200, 429, 200],
    )
  })

  it('is a user that an earlier guard found', async () => {
    const limits = [
      { limit: 1, window: '1m' as const, key: byUser<Call>(({ req }) => req.headers.token, 'read') },
    ]
    const { origin } = await serve(
      { imports: [RateLimitModule.forRoot({ limits })], controllers: [Site] },
      http(),
    )
    expect(await ofTokens(origin)).toEqual([200, 200, 200])
    expect(await ofTokens(origin)).toEqual([429, 429, 429])
  })

  async function ofTokens(origin: string) {
    const all = []
    for (const token of ['t1', 't2', 't3']) all.push((await get(origin, '/', { token })).status)
    return all
  }
})

describe('RateLimitModule', () => {
  it('takes its options from a class', async () => {
    class Config {
      createRateLimitOptions = async () => ({ limits: [{ limit: 1, window: '1m' as const }] })
    }
    const { origin } = await serve({
      imports: [RateLimitModule.forRootAsync({ useClass: Config })],
      controllers: [Site],
    })
    expect((await get(origin)).headers['x-ratelimit-limit']).toBe('1')
  })

  it('injects limiters by name, which limits may share', async () => {
    @Controller()
    @UseGuards(RateLimitGuard)
    class Orders {
      constructor(@InjectLimiter('orders') private readonly limiter: Limiter) {}
      @Get() @RateLimit({ limiter: 'orders', key: () => 'k' }) async get() {
        return (await this.limiter.peek('k')).remaining
      }
    }
    const orders = RateLimitModule.forFeature([
      { name: 'orders', policies: [slidingLog({ limit: 9, window: '1m' })] },
    ])
    const { origin } = await serve({ imports: [RateLimitModule.forRoot({}), orders], controllers: [Orders] })
    expect(await get(origin)).toMatchObject({ body: '8', headers: { 'x-ratelimit-limit': '9' } })
  })

  it('injects the same limiter into all modules that import it', async () => {
    const orders = RateLimitModule.forFeature([{ name: 'orders', policies }])
    @Module({ imports: [orders] })
    class One {
      constructor(@InjectLimiter('orders') readonly limiter: Limiter) {}
    }
    @Module({ imports: [orders] })
    class Other {
      constructor(@InjectLimiter('orders') readonly limiter: Limiter) {}
    }
    const { app } = await serve({ imports: [RateLimitModule.forRoot({}), One, Other] })
    expect(app.get(One).limiter).toBe(app.get(Other).limiter)
  })

  const limits = [{ limit: 1, window: '1m' as const }]
  it.each<[string, boolean, (store: MemoryStore) => DynamicModule]>([
    ['stays open', true, (store) => RateLimitModule.forRoot({ store, limits })],
    [
      'of a factory too',
      true,
      (store) => RateLimitModule.forRootAsync({ useFactory: () => ({ store, limits }) }),
    ],
    ['is closed that it made', false, (store) => RateLimitModule.forRoot({ store: () => store, limits })],
  ])(
    'keeps all limits in its store and closes them with the application; one %s',
    async (_, isOpen, rootOf) => {
      const store = memoryStore()
      const imports = [rootOf(store), RateLimitModule.forFeature([{ name: 'orders', policies }])]
      const { app, origin } = await serve({ imports, controllers: [Site] })
      const limiter = app.get<Limiter>(limiterToken('orders'), { strict: false })
      await get(origin)
      await limiter.consume('k')
      expect(store.size).toBe(2)
      await app.close()
      await expect(limiter.consume('k')).rejects.toThrow('the limiter is closed')
      if (isOpen) expect(store.now()).toBeGreaterThan(0)
      else expect(() => store.now()).toThrow('closed')
      await store.close()
    },
  )

  it('closes the limiters of limits and overrides with the application, and none that it was given', async () => {
    const given = createLimiter({ policies })
    @Controller()
    @UseGuards(RateLimitGuard)
    class Orders {
      @Get()
      @RateLimit({ limit: 5, window: '1m' })
      @RateLimit({ limiter: given })
      @OverrideRateLimit({ name: 'site', limit: 7, window: '1m' })
      get() {}
    }
    const limits = [{ name: 'site', limit: 3, window: '1m' as const }]
    const { app } = await serve({
      imports: [RateLimitModule.forRoot({ limits })],
      controllers: [Site, Orders],
    })
    const limitsOf = (owner: typeof Site | typeof Orders) =>
      app.get(Limits).at(owner, owner.prototype.get).asCall
    const limiters = [...limitsOf(Site), ...limitsOf(Orders)].flatMap((guard) => guard.limiters)
    await app.close()
    const closed = limiters.filter(({ isClosed }) => isClosed).map(({ name }) => name)
    expect(closed).toEqual(['site', 'site:Orders.get', 'Orders.get'])
    expect(limiters.filter(({ isClosed }) => !isClosed)).toEqual([given])
    await given.close()
  })

  it('shares and leaves open the limiters that a function `limits` brings, and closes its own', async () => {
    const given = createLimiter({ name: 'given', policies })
    const list = [{ limiter: 'tokens' }, { limiter: given }, { name: 'own', limit: 3, window: '1m' }] as const
    @Controller()
    @UseGuards(RateLimitGuard)
    class Orders {
      @Get() @RateLimit({ limits: () => list }) get() {}
    }
    const imports = [RateLimitModule.forRoot({}), RateLimitModule.forFeature([{ name: 'tokens', policies }])]
    const { app, origin } = await serve({ imports, controllers: [Orders] })
    expect([(await get(origin)).status, (await get(origin)).status]).toEqual([200, 429])
    const { limiters } = app.get(Limits).at(Orders, Orders.prototype.get).asCall[0]!
    await app.close()
    expect(limiters.map(({ name, isClosed }) => [name, isClosed])).toEqual([
      ['tokens', true],
      ['given', false],
      ['own', true],
    ])
    await given.close()
  })

  it('reads usage by the name of a limit, and closes the limiters of that', async () => {
    const limits = [{ name: 'api', limit: 9, window: '1m' }] as const
    @Controller()
    @UseGuards(RateLimitGuard)
    class Usage {
      @Get('one') @SkipRateLimit() @usageHandler(limits[0], RateLimit) one() {}
      @Get('list') @SkipRateLimit() @usageHandler({ limits }, RateLimit) list() {}
      @Get('asked') @SkipRateLimit() @usageHandler({ limits: () => limits }, RateLimit) asked() {}
    }
    const { app, origin } = await serve({
      imports: [RateLimitModule.forRoot({ limits })],
      controllers: [Site, Usage],
    })
    await get(origin)
    for (const path of ['one', 'list', 'asked'] as const) {
      expect((await get(origin, `/${path}`)).body.limits[0].policies[0]).toMatchObject({ used: 1 })
    }
    const guards = (['one', 'list', 'asked'] as const).map((path) => {
      return app.get(Limits).at(Usage, Usage.prototype[path]).asCall[0]!
    })
    await app.close()
    expect(guards.map(({ limiters: [limiter] }) => limiter!.isClosed)).toEqual([true, true, true])
  })

  it('charges a field once in a limiter that its method names twice', async () => {
    const limiter = createLimiter({ policies })
    @Controller()
    class Twice {
      @Get() @RateLimit({ limiter }) @RateLimit({ limits: [{ limiter }] }) get() {}
    }
    const { app } = await serve({ imports: [RateLimitModule.forRoot({})], controllers: [Twice] })
    const { asField } = app.get(Limits).at(Twice, Twice.prototype.get)
    expect(asField.flatMap(({ limiters }) => limiters)).toEqual([limiter])
    await limiter.close()
  })

  it('gives its defaults to limits and limiters', async () => {
    const imports = [
      RateLimitModule.forRoot({
        enforce: false,
        resetAs: 'delta',
        store: memoryStore({ clock: () => 0 }),
        limits: [{ limit: 1, window: '1m' }],
      }),
      RateLimitModule.forFeature([
        { name: 'shadow', policies },
        { name: 'strict', policies, enforce: true },
      ]),
    ]
    const { app, origin } = await serve({ imports, controllers: [Site] })
    await get(origin)
    expect(await get(origin)).toMatchObject({ status: 200, headers: { 'x-ratelimit-reset': '60' } })
    const denied = async (name: string) => {
      const limiter = app.get<Limiter>(limiterToken(name), { strict: false })
      return (await limiter.consume('k', { cost: 2 })).allowed
    }
    expect([await denied('shadow'), await denied('strict')]).toEqual([true, false])
  })
})

describe('APP_GUARD with useExisting', () => {
  const metadata = {
    imports: [RateLimitModule.forRoot({ limits: [{ limit: 1, window: '1m' }] })],
    controllers: [Site],
    providers: [{ provide: APP_GUARD, useExisting: RateLimitGuard }],
  }

  it('counts every request once', async () => {
    const { origin } = await serve(metadata)
    expect([(await get(origin)).status, (await get(origin)).status]).toEqual([200, 429])
  })

  it('is replaced by overrideProvider(RateLimitGuard) in tests', async () => {
    const guards = { canActivate: () => true }
    const module = await Test.createTestingModule({ ...metadata, controllers: [Unguarded] })
      .overrideProvider(RateLimitGuard)
      .useValue(guards)
      .compile()
    const app = module.createNestApplication({ logger: false })
    await app.listen(0, '127.0.0.1')
    const { port } = app.getHttpServer().address()
    const replies = [await get(`127.0.0.1:${port}`), await get(`127.0.0.1:${port}`)]
    await app.close()
    expect(replies.map(({ status }) => status)).toEqual([200, 200])
  })
})

describe('an application does not start', () => {
  const limit = { limit: 1, window: '1m' } as const

  it.each<[string, () => unknown, string | RegExp]>([
    [
      'with invalid options',
      () => RateLimit({ ...limit, cost: 5 as never }),
      'cost must be a function, got 5',
    ],
    [
      'with a shouldCharge that is not a function',
      () => RateLimit({ ...limit, shouldCharge: true as never }),
      'shouldCharge must be a function',
    ],
    ['with a limit that is not an object', () => RateLimit({ limit: -1, window: '1m' }), 'limit must be'],
    [
      'with an unknown option',
      () => RateLimit({ ...limit, limt: 5 } as never),
      "there is no option 'limt' of rateLimit: did you mean 'limit'?",
    ],
    [
      'with an undefined limiter',
      () => RateLimit({ limiter: 'none' }),
      /^limiter 'none' must be a provider .*limiter:none/,
    ],
    [
      'with a key provider of no module',
      () => RateLimit({ ...limit, key: Users }),
      /^key Users must be a provider/,
    ],
    [
      'with a key provider that needs the request',
      () => RateLimit({ ...limit, key: OfRequest }),
      /^key OfRequest must be a provider of the application, without dependencies that are made for each request/,
    ],
    [
      'with a function that returns no list of limits',
      () => RateLimit({ limits: () => undefined as never }),
      'limits must be a list of 1 to 16, got undefined',
    ],
    [
      'with a name in use',
      () => RateLimit({ ...limit, name: 'default' }),
      "two limiters are named 'default'",
    ],
  ])('%s', async (_, decorate, message) => {
    class Site {
      get() {}
    }
    const descriptor = Object.getOwnPropertyDescriptor(Site.prototype, 'get')!
    Get()(Site.prototype, 'get', descriptor)
    ;(decorate() as MethodDecorator)(Site.prototype, 'get', descriptor)
    Controller()(Site)
    const imports = [RateLimitModule.forRoot({ limits: [limit] })]
    const module = await Test.createTestingModule({
      imports,
      controllers: [Site],
      providers: [OfRequest],
    }).compile()
    await expect(module.createNestApplication({ logger: false }).init()).rejects.toThrow(message)
  })

  it.each<[string, unknown]>([
    ['null', null],
    ['5', 5],
    ['a URL', 'redis://h'],
    ['no store', {}],
    ['{ url }', { url: 'redis://h' }],
    ['{ socket }', { socket: { host: 'h' } }],
    ['{ client }', { client: {} }],
    ['an array', []],
    ['a Map', new Map()],
    ['a promise', Promise.resolve(memoryStore())],
    ['a function that returns none', () => undefined],
    ['a function that returns a promise', async () => memoryStore()],
    ['a client', { sendCommand() {} }],
  ])('with %s for a store', async (_, store) => {
    const imports = [RateLimitModule.forRoot({ store: store as never, limits: [limit] })]
    const module = await Test.createTestingModule({ imports }).compile()
    const message = expect.stringMatching(/^store must be made by memoryStore\(\) or redisStore\(\)/)
    await expect(module.init()).rejects.toMatchObject({ code: 'INVALID_OPTION', message })
  })

  it.each<[string, RateLimitModuleOptions, NamedLimiterOptions[]]>([
    ['limits of the module', { limits: [{ limit: -1, window: '1m' }] }, []],
    ['options of the module', { maxBuffered: -1 }, []],
    ['limiters of forFeature', {}, [{ name: 'orders', policies: [] }]],
  ])('with invalid %s, and closes the store that was made for it', async (_, options, limiters) => {
    const made: Store[] = []
    const store = () => {
      made.push(memoryStore())
      return made.at(-1)!
    }
    const imports = [RateLimitModule.forRoot({ store, ...options }), RateLimitModule.forFeature(limiters)]
    const started = Test.createTestingModule({ imports })
      .compile()
      .then((module) => module.init())
    await expect(started).rejects.toBeInstanceOf(PolicyError)
    expect(made).toHaveLength(1)
    expect(() => made[0]!.now()).toThrow('closed')
  })

  it('with invalid limits, and fails again when tried again', async () => {
    const imports = [RateLimitModule.forRoot({ limits: [{ limit: -1, window: '1m' }] })]
    const module = await Test.createTestingModule({ imports }).compile()
    await expect(module.init()).rejects.toMatchObject({ code: 'INVALID_LIMIT' })
    await expect(module.init()).rejects.toMatchObject({ code: 'INVALID_LIMIT' })
  })

  it.each<[string, object, string]>([
    [
      'with an option of another package',
      { throttlers: [] },
      "there is no option 'throttlers' of RateLimitModule: npx @sluice/cli option throttlers finds",
    ],
    [
      'with a bound on unread bytes that is none',
      { maxBuffered: '1MB' },
      'maxBuffered must be a whole number from 0 to 1073741824, got "1MB"',
    ],
    [
      'with a list of limits in place of options',
      [{ limit: 1, window: '1m' }],
      'RateLimitModule takes an object of options, got an array of 1',
    ],
  ])('%s', async (_, options, message) => {
    const imports = [RateLimitModule.forRoot(options)]
    await expect(Test.createTestingModule({ imports }).compile()).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      message: expect.stringContaining(message),
    })
  })

  it('with two limits of the module of the same name', async () => {
    const imports = [RateLimitModule.forRoot({ limits: [limit, { ...limit }] })]
    const module = await Test.createTestingModule({ imports }).compile()
    await expect(module.init()).rejects.toMatchObject({ code: 'INVALID_OPTION' })
  })

  it('with two limiters of the same name', async () => {
    const imports = ['one', 'other'].map(() => RateLimitModule.forFeature([{ name: 'orders', policies }]))
    const compiled = Test.createTestingModule({
      imports: [RateLimitModule.forRoot({}), ...imports],
    }).compile()
    await expect(compiled).rejects.toThrow("two limiters are named 'orders'")
  })
})
