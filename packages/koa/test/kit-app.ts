import Koa, { type Context, type Middleware, type Response } from 'koa'
import { Readable } from 'node:stream'
import { type Adapter, listening, type Route } from '@sluice/harness/adapters'
import { rateLimit } from '../src/index.js'

export const koaAdapter: Adapter<Context, Response> = {
  name: 'Koa',
  serve({ routes, proxyTrust, before, onError }) {
    const proxy = proxyTrust !== 'none'
    const app = new Koa(typeof proxyTrust === 'number' ? { proxy, maxIpsCount: proxyTrust } : { proxy })
    if (before) {
      app.use(async (_ctx, next) => {
        await before()
        await next()
      })
    }
    for (const route of routes) {
      for (const limit of route.limits) app.use(at(route.path, rateLimit(limit)))
      app.use(at(route.path, handlerOf(route)))
    }
    return listening(app.on('error', onError).listen(0, '127.0.0.1'))
  },
  header: (ctx, name) => ctx.get(name) || undefined,
  method: (ctx) => ctx.method,
  status: (res) => res.status,
  answerDenial: (ctx, _res, text) => (ctx.body = text),
  lacks: { 'trusting proxies by address': 'Koa only counts proxies' },
}

/** Koa has no routes. */
function at(path: string, middleware: Middleware): Middleware {
  return (ctx, next) => (ctx.path === path ? middleware(ctx, next) : next())
}

function handlerOf({ answer }: Route<Context, Response>): Middleware {
  return async (ctx) => {
    const { status = 200, headers = {}, body } = await answer()
    ctx.set(headers)
    ctx.status = status
    ctx.type = 'text'
    ctx.body = typeof body === 'string' ? body : Readable.from(body)
  }
}
