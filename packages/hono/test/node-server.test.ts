import { createAdaptorServer, type Http2Bindings, type HttpBindings } from '@hono/node-server'
import { getConnInfo } from '@hono/node-server/conninfo'
import { chargesOverHttp2, endless, LARGE } from '@sluice/harness/adapters'
import { Hono } from 'hono'
import { once } from 'node:events'
import { createServer } from 'node:http2'
import type { AddressInfo, Server } from 'node:net'
import { Readable } from 'node:stream'
import { rateLimit } from '../src/index.js'

type Bindings = HttpBindings | Http2Bindings
type Env = { Bindings: Bindings & { server?: Bindings } }

describe.each<[string, (env: object) => object]>([
  ['the bindings', (env) => env],
  ['the bindings in env.server', (server) => ({ server })],
])('over HTTP/2, with %s', (_, envOf) => {
  chargesOverHttp2(async (limiter, shouldCharge, ofPaths) => {
    const app = new Hono<Env>()
    for (const [path, limit] of Object.entries(ofPaths))
      app.get(path, rateLimit(limit), (c) => c.text('served'))
    app
      .get('/', rateLimit({ limiter, connInfo: getConnInfo }), (c) => c.text('served'))
      .use('/:charged', rateLimit({ limiter, key: () => 'k', shouldCharge }))
      .get('/late', async (c) => {
        await once((c.env.server ?? c.env).outgoing, 'close')
        return c.text('too late')
      })
      .get('/charged', (c) => c.text(LARGE))
      .get('/streamed', (c) => c.body(Readable.toWeb(endless()) as ReadableStream))
    const fetch = (request: Request, env: object) => app.fetch(request, envOf(env))
    const server = createAdaptorServer({ fetch, createServer }) as Server
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const close = async (): Promise<unknown> => once(server.close(), 'close')
    return { server, origin, close }
  })
})
