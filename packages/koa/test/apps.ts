import Koa, { type Middleware } from 'koa'
import request from 'supertest'
import { rateLimit } from '../src/index.js'

export const serve: Middleware = (ctx) => {
  ctx.body = 'served'
}

export function appOf(...middleware: readonly Middleware[]): Koa {
  const app = new Koa()
  app.silent = true
  for (const each of middleware) app.use(each)
  return app
}

export function get(app: { callback(): Parameters<typeof request>[0] }, path = '/') {
  return request(app.callback()).get(path)
}

export function limit(name: string, n: number): Middleware {
  return rateLimit({ limit: n, window: '1m', name })
}
