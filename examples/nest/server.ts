import { Controller, Get, Headers, Injectable, Module, Post, Query, Req } from '@nestjs/common'
import { APP_GUARD, NestFactory } from '@nestjs/core'
import { gcra, type Limiter, tokenBucket } from '@sluice/core'
import {
  type Call,
  decisionOf,
  InjectLimiter,
  joinKey,
  type KeyProvider,
  RateLimit,
  RateLimitGuard,
  RateLimitModule,
  SkipRateLimit,
} from '@sluice/nest'

/** Looks users up, as a database would. A real service takes them from a session or token that it has verified. */
@Injectable()
class UserKey implements KeyProvider {
  async key({ req }: Call): Promise<string> {
    return joinKey('user', req.headers['x-user'] ?? 'nobody')
  }
}

@Controller('orders')
@RateLimit({ limit: 10, window: '1m', key: UserKey })
class OrdersController {
  @Get()
  list() {
    return []
  }

  // The bucket holds 3, so a user may be quick for a moment, and refills with 5 a minute.
  @Post()
  @RateLimit({ policies: [tokenBucket({ limit: 5, window: '1m', capacity: 3 })], key: UserKey })
  create() {
    return { ordered: true }
  }
}

@Controller('chat')
class ChatController {
  constructor(@InjectLimiter('tokens') private readonly tokens: Limiter) {}

  // A cost that is known when the work is done: 100 tokens are charged on entry, the rest is settled afterwards.
  @Post()
  @SkipRateLimit()
  @RateLimit({ limiter: 'tokens', key: UserKey, cost: () => 100 })
  async chat(@Req() req: object, @Query('tokens') tokens: string) {
    const used = Math.min(Number(tokens) || 100, 1000)
    await decisionOf(req, 'tokens')?.settle(used)
    return { used }
  }

  @Get('left')
  async left(@Headers('x-user') user: string) {
    return { left: (await this.tokens.peek(joinKey('user', user))).remaining }
  }
}

@Module({
  imports: [
    // By IP, on every route: 20 in any 10 seconds, wherever they begin.
    RateLimitModule.forRoot({ limits: [{ name: 'all', limit: 20, window: '10s' }], headers: 'ietf' }),
    RateLimitModule.forFeature([{ name: 'tokens', policies: [gcra({ limit: 1000, window: '1m' })] }]),
  ],
  controllers: [OrdersController, ChatController],
  providers: [UserKey, { provide: APP_GUARD, useClass: RateLimitGuard }],
})
class AppModule {}

const app = await NestFactory.create(AppModule, { logger: ['error', 'warn'] })
process.once('SIGINT', () => void app.close())
await app.listen(Number(process.env['PORT'] ?? 3000), '127.0.0.1')
console.log(`Serving on ${await app.getUrl()}`)
