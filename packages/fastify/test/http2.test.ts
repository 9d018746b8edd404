import type { Limiter } from '@sluice/core'
import { chargesOverHttp2, endless, LARGE, statusOf } from '@sluice/harness/adapters'
import fastify from 'fastify'
import { once } from 'node:events'
import { connect } from 'node:http2'
import { decisionOf, rateLimit, rateLimitHook } from '../src/index.js'

describe('over HTTP/2', () => {
  chargesOverHttp2(
    async (limiter, shouldCharge, ofPaths) => {
      const app = serve(limiter, shouldCharge)
      for (const [path, rateLimit] of Object.entries(ofPaths))
        app.get(path, { config: { rateLimit } }, () => 'served')
      const origin = await app.listen({ port: 0, host: '127.0.0.1' })
      return { server: app.server, origin, close: () => app.close() }
    },
    ['/sent-by-the-handler'],
  )

  it('a route accepts a hook', async () => {
    const app = fastify({ http2: true, forceCloseConnections: true })
    const preHandler = rateLimitHook({ limit: 2, window: '1m', key: (request) => request.ip })
    app.get('/', { preHandler }, (request) => String(decisionOf(request)?.remaining))
    const session = connect(await app.listen({ port: 0, host: '127.0.0.1' }))
    expect(await statusOf(session, '/')).toBe(200)
    session.destroy()
    await app.close()
  })
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
  app.get('/sent-by-the-handler', { config }, (_request, reply) => void reply.hijack().raw.end(LARGE))
  app.get('/streamed', { config }, () => endless())
  return app
}
