import { Controller, Get, UseGuards } from '@nestjs/common'
import { APP_GUARD } from '@nestjs/core'
import { createLimiter, createSemaphore, memoryStore, slidingLog } from '@sluice/core'
import {
  OverrideRateLimit,
  RateLimit,
  RateLimitGuard,
  RateLimitModule,
  type RateLimitOptions,
  SkipRateLimit,
} from '../src/index.js'
import { closeApps, get, PLATFORMS, serve as serveModule, statuses } from './served.js'

afterEach(closeApps)

describe.each(PLATFORMS)('limits on %s', (_, http) => {
  it('of the module apply to every handler', async () => {
    @Controller()
    class Site {
      @Get('a') a() {}
      @Get('b') b() {}
    }
    const origin = await serve(Site, [{ limit: 2, window: '1m' }])
    expect(await statuses(origin, '/a', '/b', '/a', '/b')).toEqual([200, 200, 429, 429])
  })

  it('of a class apply to its handlers together, and those of a method to that method', async () => {
    @Controller()
    @RateLimit({ limit: 3, window: '1m' })
    class Site {
      @Get('a') a() {}
      @Get('b') @RateLimit({ limit: 1, window: '1m' }) b() {}
    }
    const origin = await serve(Site)
    expect(await statuses(origin, '/b', '/b', '/a', '/a', '/a')).toEqual([200, 429, 200, 200, 429])
  })

  it('are named Class, Class.method and default, and each is listed once', async () => {
    @Controller()
    @RateLimit({ limit: 3, window: '1m' })
    class Site {
      @Get() @RateLimit({ limit: 2, window: '1m' }) @RateLimit({ limit: 1, window: '1s' }) get() {}
    }
    const origin = await serve(Site, [{ limit: 4, window: '1m' }], { headers: ['ietf', 'x-ratelimit'] })
    const { headers } = await get(origin)
    expect(headers['ratelimit-policy']).toBe(
      '"default";q=4;w=60, "Site";q=3;w=60, "Site.get-2";q=2;w=60, "Site.get";q=1;w=1',
    )
    expect(headers['x-ratelimit-limit']).toBe('1')
  })

  it('block a key that a penalty blocks under every tier', async () => {
    const tiers = {
      free: [slidingLog({ limit: 1, window: '1m' })],
      paid: [slidingLog({ limit: 9, window: '1h' })],
    }
    const tierOf = ({ req }: { req: { url: string } }) => (req.url.endsWith('paid') ? tiers.paid : tiers.free)
    @Controller()
    class Site {
      @Get()
      @RateLimit({ policies: tierOf, tiers: [tiers.free, tiers.paid], penalty: { block: '1h' } })
      get() {}
    }
    const origin = await serve(Site)
    expect(await statuses(origin, '/?paid', '/', '/', '/?paid')).toEqual([200, 200, 429, 429])
  })

  it('charge nothing if another one denies', async () => {
    @Controller()
    @RateLimit({ limit: 2, window: '1m' })
    class Site {
      @Get('a') a() {}
      @Get('b') @RateLimit({ limit: 1, window: '1m' }) b() {}
    }
    const origin = await serve(Site)
    expect(await statuses(origin, '/b', '/b', '/b', '/a', '/a')).toEqual([200, 429, 429, 200, 429])
  })

  it('together in `limits` are charged, or not, with those of other levels', async () => {
    const limits = [
      { name: 'tenant', limit: 9, window: '1m' },
      { name: 'user', limit: 2, window: '1m' },
    ] as const
    @Controller()
    @RateLimit({ limits })
    class Site {
      @Get('a') a() {}
      @Get('b') @RateLimit({ name: 'b', limit: 1, window: '1m' }) b() {}
      @Get('c') @SkipRateLimit() c() {}
    }
    const origin = await serve(Site, [{ name: 'all', limit: 5, window: '1m' }], { headers: 'ietf' })
    expect(await statuses(origin, '/c', '/b', '/b')).toEqual([200, 200, 429])
    expect((await get(origin, '/a')).headers['ratelimit']).toBe(
      '"all";r=3;t=60, "tenant";r=7;t=60, "user";r=0;t=60',
    )
    const { status, headers, body } = await get(origin, '/b')
    expect([status, body['violated-policies']]).toEqual([429, ['user', 'b']])
    expect(headers['ratelimit']).toBe('"all";r=3;t=60, "tenant";r=7;t=60, "user";r=0;t=60, "b";r=0;t=60')
  })

  it('together in `limits` charge a limiter of another level once, with the innermost options', async () => {
    const limiter = stopped(9)
    const all = { limiter, key: () => 'all' }
    @Controller()
    @RateLimit({ limiter })
    class Site {
      @Get('a') @RateLimit({ limits: [all, { name: 'own', limit: 1, window: '1m' }] }) a() {}
      @Get('b') @RateLimit({ limits: [all, { limiter, key: () => 'b' }] }) b() {}
    }
    @Controller('listed')
    @RateLimit({ limits: [all, { limiter, key: () => 'c' }] })
    class Listed {
      @Get() @RateLimit({ limiter, key: () => 'b' }) get() {}
    }
    const origin = await serve([Site, Listed])
    expect(await statuses(origin, '/a', '/a', '/b', '/listed')).toEqual([200, 429, 200, 200])
    const left = ['all', 'b', 'c', 'ip:127.0.0.1'].map(async (key) => (await limiter.peek(key)).remaining)
    expect(await Promise.all(left)).toEqual([7, 7, 9, 9])
  })

  it('together in `limits` keep their permits where another level has the same limiter', async () => {
    const limiter = stopped(9)
    const semaphore = createSemaphore({ name: 'one', limit: 1 })
    @Controller()
    @RateLimit({ limits: [{ semaphore }, { limiter }] })
    class Site {
      @Get() @RateLimit({ limiter, cost: () => 3 }) get() {}
    }
    const origin = await serve(Site)
    const held = await semaphore.acquire('ip:127.0.0.1')
    expect(await statuses(origin, '/')).toEqual([429])
    await held.release()
    expect((await get(origin)).headers['x-ratelimit-remaining']).toBe('6')
  })

  it('are one decision, with one event for each', async () => {
    const [tenants, users] = [stopped(9), stopped(1)]
    const events: unknown[] = []
    for (const limiter of [tenants, users]) limiter.on('decision', (event) => void events.push(event))
    @Controller()
    @RateLimit({ limiter: tenants })
    class Site {
      @Get() @RateLimit({ limiter: users }) get() {}
    }
    expect(await statuses(await serve(Site), '/', '/')).toEqual([200, 429])
    const charged = { together: 2, charged: true }
    const uncharged = { together: 2, charged: false }
    expect(events).toMatchObject([charged, charged, uncharged, uncharged])
  })

  it('that are independent count before the others, and also what those deny', async () => {
    const attempts = stopped(3)
    @Controller()
    @RateLimit({ limit: 9, window: '1m' })
    class Site {
      @Get('a')
      @RateLimit({ limit: 1, window: '1m' })
      @RateLimit({ limiter: attempts, independent: true })
      a() {}
      @Get('b') b() {}
    }
    const origin = await serve(Site, [], { headers: 'ietf' })
    expect(await statuses(origin, '/a', '/a', '/a')).toEqual([200, 429, 429])
    expect((await attempts.peek('ip:127.0.0.1')).remaining).toBe(0)
    const { headers, body } = await get(origin, '/a')
    expect(body['violated-policies']).toEqual(['shared'])
    expect(headers['ratelimit']).toBe('"shared";r=0;t=60')
    expect((await get(origin, '/b')).headers['ratelimit']).toBe('"Site";r=7;t=60')
  })

  it.each([false, true])(
    'of independent `limits` are one decision, also with one overridden (%p)',
    async (overridden) => {
      const limiter = stopped(9)
      const changed = overridden ? OverrideRateLimit({ name: 'x', limit: 1 }) : () => {}
      @Controller()
      @RateLimit({
        independent: true,
        limits: [{ limiter }, { name: 'x', limit: overridden ? 5 : 1, window: '1m' }],
      })
      class Site {
        @Get() @changed @RateLimit({ limit: 8, window: '1m' }) get() {}
      }
      const origin = await serve(Site, [], { headers: 'ietf' })
      expect(await statuses(origin, '/', '/', '/')).toEqual([200, 429, 429])
      expect((await limiter.peek('ip:127.0.0.1')).remaining).toBe(8)
      expect((await get(origin)).headers['ratelimit']).not.toContain('"Site.get"')
    },
  )

  it('that wait for their turn are independent', async () => {
    const attempts = stopped(3)
    @Controller()
    @RateLimit({ limiter: attempts, maxWait: '1s' })
    class Site {
      @Get() @RateLimit({ limit: 1, window: '1m' }) get() {}
    }
    expect(await statuses(await serve(Site), '/', '/')).toEqual([200, 429])
    expect((await attempts.peek('ip:127.0.0.1')).remaining).toBe(1)
  })

  it('keep their own way to answer, their own callers and their own callbacks', async () => {
    const answered = (name: string) => ({ onDenied: () => ({ name }) })
    @Controller()
    @RateLimit({ limit: 1, window: '1m', ...answered('class'), skip: ({ req }) => req.url === '/b' })
    class Site {
      @Get('a') @RateLimit({ limit: 9, window: '1m', ...answered('method') }) a() {}
      @Get('b') @RateLimit({ limit: 2, window: '1m', ...answered('method') }) b() {}
      @Get('c') @RateLimit({ limit: 2, window: '1m', deny: () => true }) c() {}
    }
    const origin = await serve(Site)
    expect(await statuses(origin, '/c', '/a', '/b', '/b')).toEqual([403, 200, 200, 200])
    expect([(await get(origin, '/a')).body, (await get(origin, '/b')).body]).toEqual([
      { name: 'class' },
      { name: 'method' },
    ])
  })

  it('of which a handler has more than 16 stop the application', async () => {
    const limits = Array.from(
      { length: 16 },
      (_each, i) => ({ name: `limit-${i}`, limit: 9, window: '1m' }) as const,
    )
    @Controller()
    class Site {
      @Get() @RateLimit({ limit: 1, window: '1m' }) get() {}
    }
    await expect(serve(Site, limits)).rejects.toMatchObject({ code: 'INVALID_OPTION' })
  })

  it('of `limits` are skipped and overridden by their names', async () => {
    @Controller()
    @RateLimit({
      limits: [
        { name: 'tenant', limit: 9, window: '1m' },
        { name: 'user', limit: 2, window: '1m' },
      ],
    })
    class Site {
      @Get('a') @SkipRateLimit('user') a() {}
      @Get('b') @OverrideRateLimit({ name: 'user', limit: 1 }) b() {}
      @Get('c') @OverrideRateLimit({ name: 'user', cost: () => 2 }) c() {}
    }
    const origin = await serve(Site, [], { headers: 'ietf' })
    const seen = async (path: string) => (await get(origin, path)).headers['ratelimit']
    expect(await seen('/a')).toBe('"tenant";r=8;t=60')
    expect(await seen('/b')).toBe('"tenant";r=7;t=60, "user:Site.b";r=0;t=60')
    expect(await seen('/b')).toBe('"tenant";r=7;t=60, "user:Site.b";r=0;t=60')
    expect(await seen('/c')).toBe('"tenant";r=6;t=60, "user";r=0;t=60')
  })

  it('report what is left without the charge, if another one denies', async () => {
    @Controller()
    @RateLimit({ limit: 5, window: '1m' })
    class Site {
      @Get() @RateLimit({ limit: 1, window: '1m' }) get() {}
    }
    const origin = await serve(Site, [], { headers: ['ietf', 'x-ratelimit'] })
    await get(origin)
    const { status, headers } = await get(origin)
    expect(status).toBe(429)
    expect(headers['ratelimit']).toMatch(/^"Site";r=4;t=\d+, "Site.get";r=0;t=\d+$/)
    expect(headers['x-ratelimit-remaining']).toBe('0')
  })

  it('charge nothing if the key of another one fails', async () => {
    const fail = () => Promise.reject(new Error('no database'))
    const limiter = stopped(2)
    @Controller()
    @RateLimit({ limiter, key: () => 'k' })
    class Site {
      @Get() @RateLimit({ limit: 9, window: '1m', key: fail }) get() {}
    }
    expect((await get(await serve(Site))).status).toBe(500)
    expect((await limiter.peek('k')).remaining).toBe(2)
  })

  it('with shouldCharge give back only by outcome, without a warning if another one denies', async () => {
    const limiter = stopped(2)
    const warned = jest.fn()
    limiter.on('warning', warned)
    const shouldCharge = jest.fn(() => false)
    @Controller()
    @RateLimit({ limiter, key: () => 'k', shouldCharge })
    class Site {
      @Get() @RateLimit({ limit: 1, window: '1m' }) get() {}
    }
    expect(await statuses(await serve(Site), '/', '/')).toEqual([200, 429])
    expect([shouldCharge.mock.calls.length, warned.mock.calls]).toEqual([1, []])
    expect((await limiter.peek('k')).remaining).toBe(2)
  })

  it('that share a limiter charge it once, with the innermost options', async () => {
    const limiter = stopped(9)
    @Controller()
    @RateLimit({ limiter })
    class Site {
      @Get('a') a() {}
      @Get('b') @RateLimit({ limiter, cost: () => 3 }) b() {}
    }
    const origin = await serve(Site, [{ limiter }])
    const left = [await get(origin, '/a'), await get(origin, '/b')]
    expect(left.map(({ headers }) => headers['x-ratelimit-remaining'])).toEqual(['8', '5'])
  })

  it('with the same named options object are one limit, on any handler', async () => {
    const login: RateLimitOptions = { name: 'login', limit: 2, window: '1m' }
    @Controller()
    class Site {
      @Get('a') @RateLimit(login) a() {}
      @Get('b') @RateLimit(login) b() {}
    }
    expect(await statuses(await serve(Site), '/a', '/b', '/a')).toEqual([200, 200, 429])
  })

  it('of both classes apply to an inherited handler', async () => {
    @RateLimit({ limit: 3, window: '1m' })
    class Base {
      @Get() get() {}
    }
    @Controller('child')
    @RateLimit({ limit: 2, window: '1m' })
    class Child extends Base {}
    const { headers } = await get(await serve(Child, [], { headers: 'ietf' }), '/child')
    expect(headers['ratelimit-policy']).toBe('"Child-2";q=3;w=60, "Child";q=2;w=60')
  })

  it('that are inherited count for each subclass, unless they are shared by name', async () => {
    @RateLimit({ limit: 2, window: '1m' })
    @RateLimit({ name: 'all', limit: 5, window: '1m' })
    class Base {
      @Get('a') a() {}
      @Get('b') @RateLimit({ limit: 1, window: '1m' }) b() {}
    }
    @Controller('one')
    class One extends Base {}
    @Controller('two')
    class Two extends Base {}
    const origin = await serve([One, Two], [], { headers: 'ietf' })
    expect(await statuses(origin, '/one/b', '/one/b', '/one/a', '/one/a')).toEqual([200, 429, 200, 429])
    const { headers } = await get(origin, '/two/b')
    expect(headers['ratelimit-policy']).toBe('"Two";q=2;w=60, "all";q=5;w=60, "Two.b";q=1;w=60')
    expect(headers['ratelimit']).toMatch(/^"Two";r=1;t=\d+, "all";r=2;t=\d+, "Two.b";r=0;/)
  })

  it('of a subclass go before those of its base class where they share a limiter', async () => {
    const limiter = stopped(9)
    @RateLimit({ limiter, cost: () => 5 })
    class Base {
      @Get() get() {}
    }
    @Controller()
    @RateLimit({ limiter, cost: () => 2 })
    class Sub extends Base {}
    expect((await get(await serve(Sub))).headers['x-ratelimit-remaining']).toBe('7')
  })

  it('with one options object without a name count for each method, and once on one method', async () => {
    const strict: RateLimitOptions = { limit: 2, window: '1m' }
    const override = { name: 'default', limit: 5 }
    @Controller()
    class Site {
      @Get('a') @OverrideRateLimit(override) @RateLimit(strict) @RateLimit(strict) a() {}
      @Get('b') @OverrideRateLimit(override) @RateLimit(strict) b() {}
    }
    const origin = await serve(Site, [{ limit: 9, window: '1m' }], { headers: 'ietf' })
    expect(await statuses(origin, '/a', '/a', '/a', '/b')).toEqual([200, 200, 429, 200])
    expect((await get(origin, '/b')).headers['ratelimit-policy']).toBe(
      '"default:Site.b";q=5;w=60, "Site.b";q=2;w=60',
    )
  })

  it('from outside are skipped by SkipRateLimit, all or by name, but not those beside it', async () => {
    @Controller()
    @RateLimit({ limit: 9, window: '1m' })
    class Site {
      @Get('all') @SkipRateLimit() all() {}
      @Get('one') @SkipRateLimit('default') one() {}
      @Get('own') @SkipRateLimit() @RateLimit({ limit: 1, window: '1m' }) own() {}
    }
    @Controller('free')
    @SkipRateLimit()
    class Free {
      @Get() get() {}
    }
    const limits = [{ limit: 9, window: '1m' }] as const
    const { origin } = await serveModule(
      {
        imports: [RateLimitModule.forRoot({ limits, headers: 'ietf' })],
        controllers: [Site, Free],
        providers: [GLOBAL],
      },
      http(),
    )
    const listed = async (path: string) =>
      (await get(origin, path)).headers['ratelimit']?.match(/(?<=")[^";]+(?=")/g)
    expect(await listed('/all')).toBeUndefined()
    expect(await listed('/one')).toEqual(['Site'])
    expect(await listed('/own')).toEqual(['Site.own'])
    expect(await listed('/free')).toBeUndefined()
  })

  describe('with OverrideRateLimit', () => {
    it('replace the outer one of this name on a method, and count by themselves', async () => {
      @Controller()
      class Site {
        @Get('a') a() {}
        @Get('b') @OverrideRateLimit({ name: 'default', limit: 1 }) b() {}
      }
      const limits = [
        { limit: 3, window: '1m' },
        { name: 'burst', limit: 9, window: '1s' },
      ]
      const origin = await serve(Site, limits, { headers: 'ietf' })
      const { headers } = await get(origin, '/b')
      expect(await statuses(origin, '/b', '/a', '/a', '/a', '/a')).toEqual([429, 200, 200, 200, 429])
      expect(headers['ratelimit-policy']).toBe('"default:Site.b";q=1;w=60, "burst";q=9;w=1')
    })

    it('on a class count for its handlers together, and for each subclass', async () => {
      @OverrideRateLimit({ name: 'default', limit: 2 })
      class Base {
        @Get('a') a() {}
        @Get('b') @OverrideRateLimit({ name: 'default', limit: 1 }) b() {}
        @Get('free') @SkipRateLimit('default') free() {}
      }
      @Controller('one')
      class One extends Base {}
      @Controller('two')
      class Two extends Base {}
      const origin = await serve([One, Two], [{ limit: 9, window: '1m' }], { headers: 'ietf' })
      expect(await statuses(origin, '/one/a', '/one/a', '/one/a', '/two/a')).toEqual([200, 200, 429, 200])
      const policyOf = async (path: string) => (await get(origin, path)).headers['ratelimit-policy']
      expect(await policyOf('/two/a')).toBe('"default:Two";q=2;w=60')
      expect(await policyOf('/two/b')).toBe('"default:Two.b";q=1;w=60')
      expect(await policyOf('/two/free')).toBeUndefined()
    })

    it('of a subclass go before those of its base class', async () => {
      @OverrideRateLimit({ name: 'default', limit: 5, cost: () => 4 })
      @OverrideRateLimit({ name: 'burst', cost: () => 4 })
      class Base {
        @Get() get() {}
      }
      @Controller()
      @OverrideRateLimit({ name: 'default', limit: 50 })
      @OverrideRateLimit({ name: 'burst', cost: () => 2 })
      class Sub extends Base {}
      const limits = [
        { limit: 9, window: '1m' },
        { name: 'burst', limit: 9, window: '1m' },
      ] as const
      const { headers } = await get(await serve(Sub, limits, { headers: 'ietf' }))
      expect(headers['ratelimit']).toBe('"default:Sub";r=46;t=60, "burst";r=7;t=60')
    })

    it('are numbered where classes have the same name', async () => {
      const named = (path: string, method = 'get') => {
        @Controller(path)
        class Users {}
        const get = { [method]() {} }[method]!
        Object.defineProperty(Users.prototype, method, { value: get })
        const descriptor = Object.getOwnPropertyDescriptor(Users.prototype, method)!
        for (const decorate of [Get(), OverrideRateLimit({ name: 'default', limit: 5 })])
          decorate(Users.prototype, method, descriptor)
        return Users
      }
      const long = 'x'.repeat(70)
      const classes = [named('one'), named('two'), named('three', `${long}1`), named('four', `${long}2`)]
      const origin = await serve(classes, [{ limit: 9, window: '1m' }], { headers: 'ietf' })
      const nameOf = async (path: string) =>
        (await get(origin, path)).headers['ratelimit-policy']!.split('"')[1]
      const names = [
        await nameOf('/one'),
        await nameOf('/two'),
        await nameOf('/three'),
        await nameOf('/four'),
      ]
      expect(names).toEqual([
        'default:Users.get',
        'default:Users.get-2',
        `default:${'x'.repeat(56)}`,
        `default:${'x'.repeat(52)}-2`,
      ])
    })

    it('keep on a method what the class overrides, and the numbers outside of that', async () => {
      @Controller()
      @OverrideRateLimit({ name: 'default', cost: () => 2 })
      class Site {
        @Get() @OverrideRateLimit({ name: 'default', limit: 5 }) get() {}
        @Get('list')
        @OverrideRateLimit({ name: 'default', policies: [slidingLog({ limit: 8, window: '1h' })] })
        list() {}
      }
      const origin = await serve(Site, [{ limit: 9, window: '1m' }], { headers: 'ietf' })
      const seen = async (path: string) => (await get(origin, path)).headers['ratelimit']
      expect(await seen('/')).toBe('"default:Site.get";r=3;t=60')
      expect(await seen('/list')).toBe('"default:Site.list";r=6;t=3600')
    })

    it.each([
      ['of a limit', { limit: 1, window: '1m' }],
      ['of a limiter that is shared', { limiter: stopped(1) }],
    ] as const)('count by themselves with another setting of limiters, in place %s', async (_, outer) => {
      const name = 'limiter' in outer ? 'shared' : 'default'
      @Controller()
      class Site {
        @Get('a') a() {}
        @Get('b') @OverrideRateLimit({ name, enforce: false }) b() {}
      }
      const origin = await serve(Site, [outer])
      expect(await statuses(origin, '/b', '/b', '/a', '/a')).toEqual([200, 200, 200, 429])
    })

    it('keep the limit where the function of policies chooses none', async () => {
      @Controller()
      class Site {
        @Get() @OverrideRateLimit({ name: 'shared', enforce: false }) get() {}
      }
      const origin = await serve(Site, [{ limiter: stopped(1), policies: () => undefined }])
      expect(await statuses(origin, '/', '/')).toEqual([200, 200])
    })

    it('count in the outer limiter if only callbacks are given', async () => {
      @Controller()
      class Site {
        @Get('a') a() {}
        @Get('b') @OverrideRateLimit({ name: 'default', cost: () => 3 }) b() {}
      }
      const origin = await serve(Site, [{ limit: 5, window: '1m' }])
      const left = [await get(origin, '/b'), await get(origin, '/a')]
      expect(left.map(({ headers }) => headers['x-ratelimit-remaining'])).toEqual(['2', '1'])
    })

    it('count in the outer limiter with its penalty and what else is of limiters', async () => {
      @Controller()
      class Site {
        @Get('a') a() {}
        @Get('b') @OverrideRateLimit({ name: 'default', cost: () => 3 }) b() {}
      }
      const options = {
        penalty: { block: '10m' },
        onStoreError: 'deny',
        deadline: '1s',
        enforce: true,
      } as const
      const origin = await serve(Site, [{ limit: 5, window: '1m', ...options }])
      expect(await statuses(origin, '/b', '/b', '/a')).toEqual([200, 429, 429])
      expect((await get(origin, '/a')).headers['retry-after']).toBe('600')
    })

    it('have settings of limiters go before those of the outer limit', async () => {
      @Controller()
      class Site {
        @Get() @OverrideRateLimit({ name: 'default', limit: 1, enforce: false }) get() {}
      }
      const origin = await serve(Site, [{ limit: 5, window: '1m', enforce: true }])
      expect(await statuses(origin, '/', '/')).toEqual([200, 200])
    })

    it('keep the store and the callbacks of a limiter that is shared', async () => {
      const limiter = stopped(9)
      @Controller()
      @RateLimit({ limiter, key: () => 'k' })
      class Site {
        @Get('a') a() {}
        @Get('b') @OverrideRateLimit({ name: 'shared', limit: 1, window: '1m' }) b() {}
      }
      const origin = await serve(Site)
      expect(await statuses(origin, '/b', '/b', '/a')).toEqual([200, 429, 200])
      expect((await limiter.peek('k')).remaining).toBe(8)
    })

    it('count on a method of a class that skips the limit, with other numbers or with those outside', async () => {
      @Controller()
      @SkipRateLimit()
      class Site {
        @Get('free') free() {}
        @Get('a') @OverrideRateLimit({ name: 'default', limit: 1 }) a() {}
        @Get('b') @OverrideRateLimit({ name: 'default' }) b() {}
      }
      const origin = await serve(Site, [{ limit: 2, window: '1m' }])
      expect(await statuses(origin, '/free', '/free', '/free')).toEqual([200, 200, 200])
      expect(await statuses(origin, '/a', '/a', '/b', '/b', '/b')).toEqual([200, 429, 200, 200, 429])
    })

    it('stop the application if no limit outside has the name', async () => {
      @Controller()
      class Site {
        @Get() @OverrideRateLimit({ name: 'login', limit: 1 }) get() {}
      }
      const message = "Site.get overrides the limit 'login', but no limit of this name is outside of it"
      await expect(serve(Site, [{ limit: 9, window: '1m' }])).rejects.toMatchObject({
        code: 'INVALID_OPTION',
        message,
      })
    })

    it.each([
      ['limiter', { name: 'default', limiter: stopped(9) }],
      ['store', { name: 'default', limit: 1, store: memoryStore() }],
    ])('stop the application if they name another %s', async (option, override) => {
      @Controller()
      class Site {
        @Get() @OverrideRateLimit(override) get() {}
      }
      await expect(serve(Site, [{ limit: 9, window: '1m' }])).rejects.toMatchObject({
        code: 'INVALID_OPTION',
        message: expect.stringContaining(`there is no option '${option}' of @OverrideRateLimit`),
      })
    })
  })

  it.each([undefined, null, 5, 'login', {}, { limit: 1, window: '1m', independent: 'yes' }])(
    'stop the application if %p describes them',
    async (options) => {
      for (const decorate of [RateLimit, OverrideRateLimit]) {
        @Controller()
        class Site {
          @Get() @decorate(options as never) get() {}
        }
        await expect(serve(Site, [{ limit: 9, window: '1m' }])).rejects.toMatchObject({
          code: 'INVALID_OPTION',
        })
      }
    },
  )

  it('count a request once if the guard is global and local', async () => {
    @Controller()
    @UseGuards(RateLimitGuard)
    class Site {
      @Get() @UseGuards(RateLimitGuard) get() {}
    }
    const { headers } = await get(await serve(Site, [{ limit: 9, window: '1m' }]))
    expect(headers['x-ratelimit-remaining']).toBe('8')
  })

  it('apply if the guard is local', async () => {
    @Controller()
    class Site {
      @Get('a') @UseGuards(RateLimitGuard) a() {}
      @Get('b') b() {}
    }
    const imports = [RateLimitModule.forRoot({ limits: [{ limit: 1, window: '1m' }] })]
    const { origin } = await serveModule({ imports, controllers: [Site] }, http())
    expect(await statuses(origin, '/a', '/a', '/b')).toEqual([200, 429, 200])
  })

  const GLOBAL = { provide: APP_GUARD, useClass: RateLimitGuard }

  async function serve(Site: Class | Class[], limits: readonly RateLimitOptions[] = [], defaults = {}) {
    const imports = [RateLimitModule.forRoot({ ...defaults, limits })]
    return (await serveModule({ imports, controllers: [Site].flat(), providers: [GLOBAL] }, http())).origin
  }
})

type Class = new () => object

function stopped(limit: number) {
  const policies = [slidingLog({ limit, window: '1m' })]
  return createLimiter({ name: 'shared', policies, store: memoryStore({ clock: () => 0 }) })
}
