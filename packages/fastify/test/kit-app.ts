import fastify, { type FastifyReply, type FastifyRequest, type RouteHandlerMethod } from 'fastify'
import { Readable } from 'node:stream'
import { type Adapter, type App, listening, type Route } from '@sluice/harness/adapters'
import { rateLimit, rateLimitHook } from '../src/index.js'

export const fastifyAdapter: Adapter<FastifyRequest, FastifyReply> = {
  name: 'Fastify',
  async serve({ routes, proxyTrust, before, onError }) {
    const app = fastify({ trustProxy: trustProxyOf(proxyTrust) })
    app.setErrorHandler((error, _request, reply) => {
      onError(error)
      return reply.code(500).send()
    })
    if (before) app.addHook('onRequest', before)
    await app.register(rateLimit)
    for (const route of routes) {
      // A route has one limiter of its own, and hooks for the others.
      const [own = false, ...others] = route.limits
      app.route({
        url: route.path,
        method: ['GET', 'HEAD', 'POST', 'OPTIONS'],
        config: { rateLimit: own },
        onRequest: others.map(rateLimitHook),
        handler: handlerOf(route),
      })
    }
    await app.listen({ port: 0, host: '127.0.0.1' })
    return listening(app.server)
  },
  header: (request, name) => request.headers[name]?.toString(),
  method: (request) => request.method,
  status: (reply) => reply.statusCode,
  answerDenial: (_request, reply, text) => reply.type('text/plain').send(text),
}

/** Fastify takes a number and then trusts none, so that a function has to count. */
function trustProxyOf(trust: App<never, never>['proxyTrust']) {
  if (typeof trust === 'number') return (_address: string, hop: number) => hop < trust
  return trust === 'none' ? false : trust === 'all' ? true : [...trust]
}

function handlerOf(route: Route<FastifyRequest, FastifyReply>): RouteHandlerMethod {
  return async (_request, reply) => {
    const { status = 200, headers = {}, body } = await route.answer()
    reply.code(status).headers(headers).type('text/plain')
    return typeof body === 'string' ? body : Readable.from(body)
  }
}
