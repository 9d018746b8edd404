import { Module, type Type, UseGuards } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { ExpressAdapter, type NestExpressApplication } from '@nestjs/platform-express'
import { IoAdapter } from '@nestjs/platform-socket.io'
import { WsAdapter } from '@nestjs/platform-ws'
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets'
import type { Limiter } from '@sluice/core'
import type { Server } from 'node:http'
import { RateLimit, RateLimitGuard, RateLimitModule } from '../src/index.js'

/* Gateways for row 43 of the fault matrix, by the name of their platform. */
export const unread: Readonly<Record<string, (limiter: Limiter) => Promise<Server>>> = {
  ws: (limiter) => serve(limiter, WsAdapter),
  'socket.io': (limiter) => serve(limiter, IoAdapter),
}

/** Listens on a free port. */
async function serve(limiter: Limiter, Adapter: typeof WsAdapter | typeof IoAdapter): Promise<Server> {
  @WebSocketGateway()
  @UseGuards(RateLimitGuard)
  @RateLimit({ limiter })
  class Gateway {
    @SubscribeMessage('echo') echo() {
      return { event: 'echo' }
    }
  }
  @Module({ imports: [RateLimitModule.forRoot({})], providers: [Gateway] })
  class App {}
  const options = { logger: false } as const
  const app = await NestFactory.create<NestExpressApplication>(App as Type, new ExpressAdapter(), options)
  app.useWebSocketAdapter(new Adapter(app))
  await app.listen(0, '127.0.0.1')
  return app.getHttpServer()
}
