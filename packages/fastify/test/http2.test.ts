import { createLimiter, type Limiter, slidingLog } from '@sluice/core'
import fastify from 'fastify'
import { once } from 'node:events'
import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from 'node:http2'
import { Readable } from 'node:stream'
import { setImmediate as turn } from 'node:timers/promises'
import { decisionOf, rateLimit, rateLimitHook } from '../src/index.js'

const LARGE = 'x'.repeat(8_000_000)

describe('over HTTP/2', () => {
  let app: ReturnType<typeof serve>
  let session: ClientHttp2Session
  let limiter: Limiter
  let shouldCharge: jest.Mock

  beforeEach(async () => {
    limiter = createLimiter({ policies: [slidingLog({ limit: 2, window: '1m' })] })
    shouldCharge = jest.fn(() => false)
    app = serve(limiter, shouldCharge)
    session = connect(await app.listen({ port: 0, host: '127.0.0.1' }))
  })

  afterEach(async () => {
    session.destroy()
    await app.close()
  })

  it('a caller is limited by its address', async () => {
    expect([await status('/'), await status('/'), await status('/')]).toEqual([200, 200, 429])
  })

  it('a route accepts a hook', async () => {
    expect(await status('/hooked')).toBe(200)
  })

  it('shouldCharge is called when the response has been sent', async () => {
    const responded = app.responded()
    await status('/charged')
    await responded
    expect(shouldCharge.mock.calls).toHaveLength(1)
    expect((await limiter.peek('k')).remaining).toBe(2)
  })

  it.each<[string, string, (stream: ClientHttp2Stream) => void]>([
    ['resets a large response', '/charged', (stream) => stream.close(constants.NGHTTP2_CANCEL)],
    ['goes away in the middle of a large response', '/charged', () => session.destroy()],
    [
      'resets a response that the handler sends itself',
      '/raw',
      (stream) => stream.close(constants.NGHTTP2_CANCEL),
    ],
    ['resets a stream', '/streamed', (stream) => stream.close(constants.NGHTTP2_CANCEL)],
  ])('the charge is kept when the caller %s', async (_, path, hangUp) => {
    const responded = app.responded()
    const stream = session.request({ ':path': path }).on('error', () => undefined)
    await once(stream, 'response')
    hangUp(stream)
    await responded
    expect(shouldCharge.mock.calls).toHaveLength(0)
    expect((await limiter.peek('k')).remaining).toBe(1)
  })

  it('the charge is kept when the caller hangs up before the response', async () => {
    const responded = app.responded()
    const reached = once(app.server, 'request')
    const stream = session.request({ ':path': '/late' }).on('error', () => undefined)
    await reached
    stream.close(constants.NGHTTP2_CANCEL)
    await responded
    expect(shouldCharge.mock.calls).toHaveLength(0)
    expect((await limiter.peek('k')).remaining).toBe(1)
  })

  async function status(path: string): Promise<number | undefined> {
    const stream = session.request({ ':path': path })
    const [headers] = (await once(stream, 'response')) as [{ ':status'?: number }]
    stream.resume()
    await once(stream, 'end')
    return headers[':status']
  }
})

function serve(limiter: Limiter, shouldCharge: () => boolean) {
  const app = fastify({ http2: true, forceCloseConnections: true })
  app.register(rateLimit, { limiter })
  app.get('/', () => 'served')
  const config = { rateLimit: { limiter, key: () => 'k', shouldCharge } }
  app.get('/charged', { config }, () => LARGE)
  app.get('/late', { config }, async (_request, reply) => {
    await once(reply.raw, 'close')
    return 'too late'
  })
  const preHandler = rateLimitHook({ limiter, key: (request) => request.ip })
  app.get('/hooked', { preHandler }, (request) => String(decisionOf(request)?.remaining))
  app.get('/raw', { config }, (_request, reply) => void reply.hijack().raw.end(LARGE))
  app.get('/streamed', { config }, () => Readable.from(endless()))
  /** Resolves when the next response is over, sent or not, and its listeners have run. */
  const responded = async (): Promise<void> => {
    const [, response] = (await once(app.server, 'request')) as [unknown, NodeJS.EventEmitter]
    await once(response, 'close')
    await turn()
  }
  return Object.assign(app, { responded })
}

async function* endless() {
  for (;;) {
    yield 'x'.repeat(64_000)
    await turn()
  }
}
