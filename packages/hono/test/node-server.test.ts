import { createAdaptorServer, type Http2Bindings, type HttpBindings } from '@hono/node-server'
import { getConnInfo } from '@hono/node-server/conninfo'
import { createLimiter, type Limiter, slidingLog } from '@sluice/core'
import { Hono } from 'hono'
import { once } from 'node:events'
import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants, createServer } from 'node:http2'
import type { AddressInfo, Server } from 'node:net'
import { Readable } from 'node:stream'
import { setImmediate as turn } from 'node:timers/promises'
import { rateLimit } from '../src/index.js'

type Bindings = HttpBindings | Http2Bindings
type Env = { Bindings: Bindings & { server?: Bindings } }

const LARGE = 'x'.repeat(8_000_000)

describe.each<[string, (env: object) => object]>([
  ['the bindings', (env) => env],
  ['the bindings in env.server', (server) => ({ server })],
])('over HTTP/2, with %s', (_, envOf) => {
  let server: Server
  let session: ClientHttp2Session
  let limiter: Limiter
  let shouldCharge: jest.Mock

  beforeEach(async () => {
    limiter = createLimiter({ policies: [slidingLog({ limit: 2, window: '1m' })] })
    shouldCharge = jest.fn(() => false)
    const app = new Hono<Env>()
      .get('/', rateLimit({ limiter, connInfo: getConnInfo }), (c) => c.text('served'))
      .use('/:charged', rateLimit({ limiter, key: () => 'k', shouldCharge }))
      .get('/late', async (c) => {
        await once((c.env.server ?? c.env).outgoing, 'close')
        return c.text('too late')
      })
      .get('/charged', (c) => c.text(LARGE))
      .get('/streamed', (c) => c.body(Readable.toWeb(Readable.from(endless())) as ReadableStream))
    server = createAdaptorServer({
      fetch: (request, env) => app.fetch(request, envOf(env)),
      createServer,
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  })

  afterEach(async () => {
    session.destroy()
    server.close()
    await once(server, 'close')
  })

  it('a caller is limited by its address', async () => {
    expect([await status('/'), await status('/'), await status('/')]).toEqual([200, 200, 429])
    expect((await limiter.peek('ip:127.0.0.1')).remaining).toBe(0)
  })

  it('shouldCharge is called when the response has been sent', async () => {
    const responded = nextResponse()
    await status('/charged')
    await responded
    expect(shouldCharge.mock.calls).toHaveLength(1)
    expect((await limiter.peek('k')).remaining).toBe(2)
  })

  it.each<[string, string, (stream: ClientHttp2Stream) => void]>([
    ['resets a large response', '/charged', (stream) => stream.close(constants.NGHTTP2_CANCEL)],
    ['goes away in the middle of a large response', '/charged', () => session.destroy()],
    ['resets a stream', '/streamed', (stream) => stream.close(constants.NGHTTP2_CANCEL)],
  ])('the charge is kept when the caller %s', async (_, path, hangUp) => {
    const responded = nextResponse()
    const stream = session.request({ ':path': path }).on('error', () => undefined)
    await once(stream, 'response')
    hangUp(stream)
    await responded
    expect(shouldCharge.mock.calls).toHaveLength(0)
    expect((await limiter.peek('k')).remaining).toBe(1)
  })

  it('the charge is kept when the caller hangs up before the response', async () => {
    const responded = nextResponse()
    const reached = once(server, 'request')
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

  /** Resolves when the next response is over, sent or not, and its listeners have run. */
  async function nextResponse(): Promise<void> {
    const [, response] = (await once(server, 'request')) as [unknown, NodeJS.EventEmitter]
    await once(response, 'close')
    await turn()
  }
})

async function* endless() {
  for (;;) {
    yield Buffer.alloc(64_000)
    await turn()
  }
}
