import {
  All,
  type ArgumentsHost,
  Catch,
  Controller,
  type INestApplication,
  Module,
  Res,
  UseGuards,
} from '@nestjs/common'
import { type AbstractHttpAdapter, BaseExceptionFilter, NestFactory } from '@nestjs/core'
import {
  type Adapter,
  type Answer,
  type App,
  listening,
  type Route,
  type Served,
} from '@sluice/harness/adapters'
import { type Call, RateLimit, RateLimitGuard, RateLimitModule } from '../src/index.js'

type KitApp = App<Call, Call>

/** The parts of set-up and answering that differ between platforms. */
export interface NestPlatform {
  create(proxyTrust: KitApp['proxyTrust']): AbstractHttpAdapter
  /** Sends as text/plain. */
  send(res: any, status: number, body: Answer['body'], headers?: Answer['headers']): Promise<unknown>
}

export function kitAdapter(name: string, platform: NestPlatform): Adapter<Call, Call> {
  return {
    name,
    serve: (app) => serve(app, platform),
    header: ({ req }, header) => req.headers[header],
    method: ({ req }) => req.method,
    status: ({ res }) => res.statusCode,
    answerDenial: (_call, _res, text) => new TextDenial(text),
  }
}

async function serve(
  { routes, proxyTrust, before, onError }: KitApp,
  platform: NestPlatform,
): Promise<Served> {
  @Module({ imports: [RateLimitModule.forRoot({})], controllers: [controllerOf(routes, platform)] })
  class KitModule {}
  const http = platform.create(proxyTrust)
  const app: INestApplication = await NestFactory.create(KitModule, http, { logger: false })
  if (before) {
    app.use(async (_req: unknown, _res: unknown, next: () => void) => {
      await before()
      next()
    })
  }
  app.useGlobalFilters(new KitFilter(http, platform, onError))
  await app.listen(0, '127.0.0.1')
  return listening(app.getHttpServer())
}

function controllerOf(routes: KitApp['routes'], platform: NestPlatform) {
  class Routes {}
  routes.forEach((route, i) => {
    const value = handlerOf(route, platform)
    const method = `route${i}`
    Object.defineProperty(Routes.prototype, method, { value, writable: true })
    const descriptor = Object.getOwnPropertyDescriptor(Routes.prototype, method)!
    Res()(Routes.prototype, method, 0)
    // From the last to the first, as TypeScript does.
    for (const limit of [...route.limits].reverse()) RateLimit(limit)(Routes.prototype, method, descriptor)
    All(route.path)(Routes.prototype, method, descriptor)
  })
  UseGuards(RateLimitGuard)(Routes)
  Controller()(Routes)
  return Routes
}

function handlerOf({ answer }: Route<Call, Call>, platform: NestPlatform) {
  return async (res: unknown) => {
    const { status = 200, headers, body } = await answer()
    await platform.send(res, status, body, headers)
  }
}

/** What an application of its own making answers denials with. */
class TextDenial extends Error {}

@Catch()
class KitFilter extends BaseExceptionFilter {
  constructor(
    http: AbstractHttpAdapter,
    private readonly platform: NestPlatform,
    private readonly onError: KitApp['onError'],
  ) {
    super(http)
  }

  override handleUnknownError(exception: unknown, host: ArgumentsHost, http: AbstractHttpAdapter): void {
    if (exception instanceof TextDenial) {
      return void this.platform.send(host.switchToHttp().getResponse(), 429, exception.message)
    }
    this.onError(exception)
    super.handleUnknownError(exception, host, http)
  }
}
