import * as common from '@nestjs/common'
import { type ArgumentsHost, Catch, UseFilters, UseGuards } from '@nestjs/common'
import { APP_GUARD } from '@nestjs/core'
import { WsAdapter } from '@nestjs/platform-ws'
import { type OnGatewayConnection, SubscribeMessage, WebSocketGateway, WsException } from '@nestjs/websockets'
import { createLimiter, type Limiter, slidingLog } from '@sluice/core'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { WebSocket } from 'ws'
import {
  type Call,
  clientAddress,
  decisionOf,
  InjectLimiter,
  RateLimit,
  RateLimitException,
  RateLimitGuard,
  RateLimitModule,
  type RateLimitOptions,
  SkipRateLimit,
} from '../src/index.js'
import { closeApps, PLATFORMS, serve as serveModule } from './served.js'

const clients: WebSocket[] = []

afterEach(async () => {
  clients.splice(0).forEach((client) => client.terminate())
  await closeApps()
})

const connections = new WeakMap<object, string>()
/** A key for each connection. */
const byConnection = ({ req: client }: Call) => {
  if (!connections.has(client)) connections.set(client, randomUUID())
  return connections.get(client)!
}

describe.each(PLATFORMS)('messages over WebSockets on %s', (_, http) => {
  it('are each counted, by the address of their connection', async () => {
    const limiter = createLimiter({ name: 'messages', policies: [slidingLog({ limit: 2, window: '1m' })] })
    const keys: string[] = []
    limiter.on('decision', ({ key }) => void keys.push(key))
    const origin = await serve({ limiter })
    const [one, other] = [await connect(origin), await connect(origin)]
    const answers = [await say(one, 'echo'), await say(other, 'echo'), await say(one, 'echo')]
    expect(answers.map(({ event }) => event)).toEqual(['echo', 'echo', 'exception'])
    expect(keys).toEqual(['ip:127.0.0.1', 'ip:127.0.0.1', 'ip:127.0.0.1'])
  })

  it.each<[string, RateLimitOptions, number]>([
    ['beyond the limit', {}, 1],
    ['from a banned address', { deny: ['127.0.0.1'] }, 0],
  ])('on connections that are reset at once reach no handler %s', async (_, options, most) => {
    const limiter = createLimiter({ name: 'messages', policies: [slidingLog({ limit: 1, window: '1m' })] })
    let echoed = 0
    @WebSocketGateway()
    @UseGuards(RateLimitGuard)
    @RateLimit({ limiter, ...options })
    class Counting {
      @SubscribeMessage('echo') echo() {
        echoed++
        return { event: 'echo' }
      }
    }
    const metadata = { imports: [RateLimitModule.forRoot({})], providers: [Counting] }
    const prepare = (app: common.INestApplication) => app.useWebSocketAdapter(new WsAdapter(app))
    const { origin } = await serveModule(metadata, http(), prepare)
    // Its address is known, and its limit is used up if it may pass at all.
    const witness = await connect(origin)
    await say(witness, 'echo')
    for (let i = 0; i < 50; i++) await sendAndReset(origin)
    await say(witness, 'echo')
    expect(echoed).toBe(most)
  })

  it('are counted by connection with such a key', async () => {
    const origin = await serve({ limit: 1, window: '1m', key: byConnection })
    const [one, other] = [await connect(origin), await connect(origin)]
    const answers = [
      await say(one, 'echo'),
      await say(other, 'echo'),
      await say(one, 'echo'),
      await say(other, 'echo'),
    ]
    expect(answers.map(({ event }) => event)).toEqual(['echo', 'echo', 'exception', 'exception'])
  })

  it('are charged their cost, and charge no limit if another one denies', async () => {
    const cost = ({ context }: Call) => context.switchToWs().getData<number>()
    const origin = await serve({ limit: 3, window: '1m', cost })
    const client = await connect(origin)
    const answers = [await say(client, 'once', 2), await say(client, 'once', 1), await say(client, 'echo', 1)]
    expect(answers.map(({ event }) => event)).toEqual(['once', 'exception', 'echo'])
  })

  it('are denied with a WsException that says how long to wait', async () => {
    const origin = await serve({ limit: 1, window: '1m' })
    const client = await connect(origin)
    await say(client, 'echo')
    expect(await say(client, 'echo')).toEqual({
      event: 'exception',
      data: {
        status: 'error',
        message: expect.stringMatching(/^Too many requests. Try again in \d+ seconds.$/),
        code: 'TOO_MANY_REQUESTS',
        retryAfterMs: expect.any(Number),
        problem: expect.objectContaining({ status: 429, 'violated-policies': ['Gateway'] }),
      },
    })
  })

  it('leave nothing on a long-lived connection', async () => {
    const seen = new Set<object>()
    const key = ({ req: client }: Call) => {
      seen.add(client)
      return 'k'
    }
    const client = await connect(await serve({ limit: 9, window: '1m', key }))
    for (let i = 0; i < 3; i++) await say(client, 'echo')
    expect([...seen].map((client) => decisionOf(client))).toEqual([undefined])
  })

  it('reach the filters of the gateway when denied', async () => {
    const origin = await serve({ limit: 1, window: '1m' })
    const client = await connect(origin)
    await say(client, 'echo')
    await say(client, 'filtered')
    expect(seen).toEqual([expect.objectContaining({ cause: expect.any(RateLimitException) })])
  })

  it('are counted, while connections need an injected limiter', async () => {
    const origin = await serve({ limit: 9, window: '1m' })
    const states = []
    for (let i = 0; i < 4; i++) {
      const client = await connect(origin)
      states.push(
        await Promise.race([
          say(client, 'echo').then(({ event }) => event),
          once(client, 'close').then(([code]) => code),
        ]),
      )
    }
    expect(states).toEqual(['echo', 'echo', 'echo', 1008])
  })

  it('are counted by the global guard, or the application does not start if Nest cannot run it', async () => {
    @WebSocketGateway()
    @RateLimit({ limit: 1, window: '1m' })
    class Unguarded {
      @SubscribeMessage('echo') echo() {
        return { event: 'echo' }
      }
    }
    const metadata = {
      imports: [RateLimitModule.forRoot({})],
      providers: [Unguarded, { provide: APP_GUARD, useClass: RateLimitGuard }],
    }
    const started = serveModule(metadata, http(), (app) => app.useWebSocketAdapter(new WsAdapter(app)))
    if (!('StandardSchemaValidationPipe' in common)) {
      return expect(started).rejects.toThrow(
        'Put @UseGuards(RateLimitGuard) on Unguarded, or @SkipRateLimit()',
      )
    }
    const client = await connect((await started).origin)
    expect([(await say(client, 'echo')).event, (await say(client, 'echo')).event]).toEqual([
      'echo',
      'exception',
    ])
  })

  it('are counted by a guard that extends ours', async () => {
    class Own extends RateLimitGuard {}
    @WebSocketGateway()
    @UseGuards(Own)
    @RateLimit({ limit: 1, window: '1m' })
    class Guarded {
      @SubscribeMessage('echo') echo() {
        return { event: 'echo' }
      }
    }
    const metadata = {
      imports: [RateLimitModule.forRoot({})],
      providers: [Guarded, { provide: APP_GUARD, useClass: RateLimitGuard }],
    }
    const prepare = (app: common.INestApplication) => app.useWebSocketAdapter(new WsAdapter(app))
    const client = await connect((await serveModule(metadata, http(), prepare)).origin)
    const events = [(await say(client, 'echo')).event, (await say(client, 'echo')).event]
    expect(events).toEqual(['echo', 'exception'])
  })

  it('need no guard without limits', async () => {
    @WebSocketGateway()
    @SkipRateLimit()
    class Free {
      @SubscribeMessage('echo') echo() {
        return { event: 'echo' }
      }
    }
    const metadata = {
      imports: [RateLimitModule.forRoot({ limits: [{ limit: 1, window: '1m' }] })],
      providers: [Free, { provide: APP_GUARD, useClass: RateLimitGuard }],
    }
    const prepare = (app: common.INestApplication) => app.useWebSocketAdapter(new WsAdapter(app))
    const client = await connect((await serveModule(metadata, http(), prepare)).origin)
    expect([(await say(client, 'echo')).event, (await say(client, 'echo')).event]).toEqual(['echo', 'echo'])
  })

  const seen: unknown[] = []
  beforeEach(() => void seen.splice(0))

  @Catch(WsException)
  class Filter {
    catch(exception: WsException, host: ArgumentsHost) {
      seen.push(exception)
      host
        .switchToWs()
        .getClient<WebSocket>()
        .send(JSON.stringify({ event: 'filtered' }))
    }
  }

  async function serve(options: RateLimitOptions): Promise<string> {
    @WebSocketGateway()
    @UseGuards(RateLimitGuard)
    @RateLimit(options)
    class Gateway implements OnGatewayConnection {
      constructor(@InjectLimiter('connections') private readonly limiter: Limiter) {}

      async handleConnection(client: WebSocket, request: IncomingMessage) {
        const { allowed } = await this.limiter.consume(clientAddress(request.socket.remoteAddress)!)
        if (!allowed) client.close(1008)
      }

      @SubscribeMessage('echo') echo() {
        return { event: 'echo' }
      }
      @SubscribeMessage('once') @RateLimit({ limit: 1, window: '1m' }) once() {
        return { event: 'once' }
      }
      @SubscribeMessage('filtered') @UseFilters(Filter) filtered() {
        return { event: 'filtered' }
      }
    }
    const connections = RateLimitModule.forFeature([
      { name: 'connections', policies: [slidingLog({ limit: 3, window: '1m' })] },
    ])
    const metadata = {
      imports: [RateLimitModule.forRoot({}), connections],
      providers: [Gateway, { provide: APP_GUARD, useClass: RateLimitGuard }],
    }
    return (await serveModule(metadata, http(), (app) => app.useWebSocketAdapter(new WsAdapter(app)))).origin
  }
})

async function connect(origin: string): Promise<WebSocket> {
  const client = new WebSocket(`ws://${origin}`)
  clients.push(client)
  await once(client, 'open')
  return client
}

/** Opens a WebSocket, sends a message, and resets the connection as soon as that is written. */
async function sendAndReset(origin: string): Promise<void> {
  const client = new WebSocket(`ws://${origin}`)
  const upgraded = once(client, 'upgrade')
  await once(client, 'open')
  const [response] = (await upgraded) as [IncomingMessage]
  client
    .on('error', () => {})
    .send(JSON.stringify({ event: 'echo' }), () => void response.socket.resetAndDestroy())
  await once(client, 'close')
}

async function say(client: WebSocket, event: string, data?: unknown): Promise<{ event: string; data: any }> {
  client.send(JSON.stringify({ event, data }))
  const [answer] = await once(client, 'message')
  return JSON.parse(String(answer))
}
