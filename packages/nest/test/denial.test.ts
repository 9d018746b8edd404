import {
  type ArgumentsHost,
  Catch,
  Controller,
  type ExceptionFilter,
  Get,
  Logger,
  Req,
  UseGuards,
} from '@nestjs/common'
import { createLimiter, memoryStore, slidingLog } from '@sluice/core'
import { decisionOf, RateLimit, RateLimitException, RateLimitGuard, RateLimitModule } from '../src/index.js'
import { closeApps, get, PLATFORMS, serve as serveModule } from './served.js'

afterEach(closeApps)

const limiter = () =>
  createLimiter({
    name: 'api',
    policies: [slidingLog({ limit: 1, window: '1m' })],
    store: memoryStore({ clock: () => 0 }),
  })

describe.each(PLATFORMS)('a denial on %s', (_, http) => {
  it('reaches the exception filters with its headers set', async () => {
    const seen: RateLimitException[] = []
    @Catch(RateLimitException)
    class Filter implements ExceptionFilter {
      catch(exception: RateLimitException, host: ArgumentsHost) {
        seen.push(exception)
        const res = host.switchToHttp().getResponse()
        void res.status(exception.getStatus()).header('Content-Type', 'text/plain').send(exception.message)
      }
    }
    const origin = await serve({ limiter: limiter() }, (app) => app.useGlobalFilters(new Filter()))
    await get(origin)
    const { status, headers, body } = await get(origin)
    expect([status, body]).toEqual([429, 'Too many requests. Try again in 60 seconds.'])
    expect(headers).toMatchObject({
      'retry-after': '60',
      'cache-control': 'no-store',
      'x-ratelimit-remaining': '0',
    })
    expect(seen).toHaveLength(1)
    expect(seen[0]!.getResponse()).toMatchObject({ status: 429, 'violated-policies': ['api'] })
    expect(seen[0]!.decision).toMatchObject({ allowed: false, limiter: 'api', retryAfterMs: 60_000 })
  })

  it('is sent as problem details, and logs nothing', async () => {
    const logged = ['log', 'warn', 'error'].map((level) => jest.spyOn(Logger.prototype, level as 'warn'))
    const { headers, body } = await denied({ limiter: limiter() })
    expect(headers['content-type']).toMatch(/^application\/problem\+json(?:;|$)/)
    expect(body.status ?? JSON.parse(body).status).toBe(429)
    expect(
      logged.flatMap(({ mock }) => mock.calls).filter(([message]) => /Content-Type/.test(message)),
    ).toEqual([])
    jest.restoreAllMocks()
  })

  it.each([
    ['its own JSON', () => ({ error: 'slow down' }), /^application\/json/],
    [
      'a part of the problem details',
      (exception: any) => ({ ...exception.getResponse() }),
      /^application\/json/,
    ],
    ['the problem details', (exception: any) => exception.getResponse(), /^application\/problem\+json/],
  ])('has the type of the body that an exception filter sends, %s', async (_, bodyOf, type) => {
    @Catch(RateLimitException)
    class Filter implements ExceptionFilter {
      catch(exception: RateLimitException, host: ArgumentsHost) {
        void host.switchToHttp().getResponse().status(429).send(bodyOf(exception))
      }
    }
    const origin = await serve({ limiter: limiter() }, (app) => app.useGlobalFilters(new Filter()))
    await get(origin)
    const { status, headers } = await get(origin)
    expect([status, headers['content-type']]).toEqual([429, expect.stringMatching(type)])
  })

  it('has the body that onDenied returns, with the usual status and headers', async () => {
    const onDenied = async () => ({ error: 'slow down' })
    const { status, headers, body } = await denied({ limiter: limiter(), onDenied })
    expect([status, headers['retry-after'], body]).toEqual([429, '60', { error: 'slow down' }])
  })

  it("has Nest's format if onDenied returns text", async () => {
    const { status, body } = await denied({ limiter: limiter(), onDenied: () => 'slow down' })
    expect([status, body]).toEqual([429, { statusCode: 429, message: 'slow down' }])
  })

  it('does not reach the handler, which finds the decision about allowed requests', async () => {
    const decisions: unknown[] = []
    const origin = await serve(
      { limiter: limiter() },
      () => {},
      (req) => decisions.push(decisionOf(req, 'api')),
    )
    await get(origin)
    await get(origin)
    expect(decisions).toEqual([expect.objectContaining({ allowed: true, remaining: 0 })])
  })

  async function denied(options: Parameters<typeof RateLimit>[0]) {
    const origin = await serve(options)
    await get(origin)
    return get(origin)
  }

  async function serve(
    options: Parameters<typeof RateLimit>[0],
    prepare: Parameters<typeof serveModule>[2] = () => {},
    handle: (req: object) => unknown = () => {},
  ) {
    @Controller()
    @UseGuards(RateLimitGuard)
    class Site {
      @Get() @RateLimit(options) get(@Req() req: object) {
        handle(req)
      }
    }
    return (
      await serveModule({ imports: [RateLimitModule.forRoot({})], controllers: [Site] }, http(), prepare)
    ).origin
  }
})
