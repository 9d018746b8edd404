import { UseGuards } from '@nestjs/common'
import { IoAdapter } from '@nestjs/platform-socket.io'
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets'
import { createLimiter, type Limiter, slidingLog } from '@sluice/core'
import { io, type Socket } from 'socket.io-client'
import { RateLimit, RateLimitGuard, RateLimitModule } from '../src/index.js'
import { closeApps, PLATFORMS, serve } from './served.js'

const clients: Socket[] = []

afterEach(async () => {
  clients.splice(0).forEach((client) => client.disconnect())
  await closeApps()
})

describe.each(PLATFORMS)('messages over socket.io on %s', (_, http) => {
  it('are each counted, by the address of their connection', async () => {
    const limiter = limiterOf(2)
    const keys: string[] = []
    limiter.on('decision', ({ key }) => void keys.push(key))
    const origin = await start(limiter)
    const [one, other] = [connect(origin), connect(origin)]
    const answers = [await say(one), await say(other), await say(one)]
    expect(answers.map(([event]) => event)).toEqual(['echo', 'echo', 'exception'])
    expect(keys).toEqual(['ip:127.0.0.1', 'ip:127.0.0.1', 'ip:127.0.0.1'])
  })

  it('are denied with an exception that says how long to wait', async () => {
    const client = connect(await start(limiterOf(1)))
    await say(client)
    expect(await say(client)).toEqual([
      'exception',
      {
        status: 'error',
        message: expect.stringMatching(/^Too many requests. Try again in \d+ seconds.$/),
        code: 'TOO_MANY_REQUESTS',
        retryAfterMs: expect.any(Number),
        problem: expect.objectContaining({ status: 429 }),
      },
    ])
  })

  async function start(limiter: Limiter): Promise<string> {
    @WebSocketGateway()
    @UseGuards(RateLimitGuard)
    @RateLimit({ limiter })
    class Gateway {
      @SubscribeMessage('echo') echo() {
        return { event: 'echo', data: 'echo' }
      }
    }
    const metadata = { imports: [RateLimitModule.forRoot({})], providers: [Gateway] }
    return (await serve(metadata, http(), (app) => app.useWebSocketAdapter(new IoAdapter(app)))).origin
  }
})

function limiterOf(limit: number): Limiter {
  return createLimiter({ name: 'messages', policies: [slidingLog({ limit, window: '1m' })] })
}

function connect(origin: string): Socket {
  const client = io(`http://${origin}`, { transports: ['websocket'], reconnection: false })
  clients.push(client)
  return client
}

/** The next event that the server sends, and its data. */
function say(client: Socket): Promise<[string, unknown]> {
  return new Promise((resolve) => {
    client.onAny(function answered(event: string, data: unknown) {
      client.offAny(answered)
      resolve([event, data])
    })
    client.emit('echo', 'hello')
  })
}
