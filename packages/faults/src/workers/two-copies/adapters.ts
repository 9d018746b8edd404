import { Controller, Get, Module } from '@nestjs/common'
import { APP_GUARD, NestFactory } from '@nestjs/core'
import express from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import assert from 'node:assert/strict'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Copy, Pair } from './copy.js'

/** Serves requests with `options` for the limit, hands `ask` what sends one, and ends. */
type Serve = (
  used: Copy,
  options: object,
  ask: (get: () => Promise<Response>) => Promise<void>,
) => Promise<void>

const serves: Readonly<Record<string, Serve>> = {
  async Express({ express: { rateLimit } }, options, ask) {
    const app = express().use(rateLimit(options))
    app.get('/', (_req, res) => void res.send('served'))
    await listening(app, ask)
  },
  async Koa({ koa: { rateLimit } }, options, ask) {
    const app = new Koa().use(rateLimit(options)).use((ctx) => void (ctx.body = 'served'))
    await listening(app.callback(), ask)
  },
  async Fastify({ fastify: { rateLimit } }, options, ask) {
    const app = fastify()
    await app.register(rateLimit, options)
    app.get('/', () => 'served')
    await app.listen({ port: 0 })
    await ask(() => get((app.server.address() as AddressInfo).port))
    await app.close()
  },
  async Hono({ hono: { rateLimit } }, options, ask) {
    const app = new Hono().use(rateLimit(options)).get('/', (c) => c.text('served'))
    await ask(async () => app.request('/'))
  },
  async Nest({ nest: { RateLimitModule, RateLimitGuard } }, options, ask) {
    @Controller()
    class Root {
      @Get()
      get() {
        return 'served'
      }
    }
    @Module({
      imports: [RateLimitModule.forRoot({ limits: [options] })],
      controllers: [Root],
      providers: [{ provide: APP_GUARD, useClass: RateLimitGuard }],
    })
    class App {}
    const app = await NestFactory.create(App, { logger: false })
    await app.listen(0)
    await ask(() => get((app.getHttpServer().address() as AddressInfo).port))
    await app.close()
  },
}

/** One request passes and the next is denied, with all headers of both. */
async function served([made, used]: Pair, serve: Serve, headers: 'x-ratelimit' | 'ietf'): Promise<void> {
  const { createLimiter, fixedWindow, gcra } = made.core
  const policies = [fixedWindow({ limit: 1, window: '1d' }), gcra({ limit: 60, window: '1d' })]
  const limiter = createLimiter({ name: 'mixed', policies })
  const options = { limiter, headers, resetAs: 'delta', key: () => 'caller' }
  await serve(used, options, async (send) => {
    const [allowed, denied] = [await send(), await send()]
    assert.deepEqual([allowed.status, await allowed.text(), denied.status], [200, 'served', 429])
    const problem = (await denied.json()) as Record<string, unknown>
    assert.deepEqual(problem['violated-policies'], ['mixed-1-per-1d'])
    assert.ok(Number(denied.headers.get('retry-after')) >= 1)
    for (const response of [allowed, denied]) {
      const header = (name: string): string | null => response.headers.get(name)
      if (headers === 'x-ratelimit') {
        assert.deepEqual([header('x-ratelimit-limit'), header('x-ratelimit-remaining')], ['1', '0'])
      } else {
        assert.equal(
          header('ratelimit-policy'),
          '"mixed-1-per-1d";q=1;w=86400, "mixed-60-per-1d";q=60;w=86400',
        )
        assert.match(header('ratelimit')!, /^"mixed-1-per-1d";r=0;t=\d+, "mixed-60-per-1d";r=59;t=\d+$/)
      }
    }
  })
}

export const adapters: Readonly<Record<string, (pair: Pair) => Promise<void>>> = Object.fromEntries(
  Object.entries(serves).flatMap(([name, serve]) => [
    [`${name} with x-ratelimit`, (pair: Pair) => served(pair, serve, 'x-ratelimit')],
    [`${name} with ietf`, (pair: Pair) => served(pair, serve, 'ietf')],
  ]),
)

type Listener = (req: IncomingMessage, res: ServerResponse) => unknown

/** Serves an application on a free port while `ask` sends it requests, and ends it. */
async function listening(app: Listener, ask: Parameters<Serve>[2]): Promise<void> {
  const server = createServer((req, res) => void app(req, res))
  await new Promise<void>((resolve) => server.listen(0, resolve))
  await ask(() => get((server.address() as AddressInfo).port))
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
}

/** Sends a request to a port of this machine. */
function get(port: number): Promise<Response> {
  return fetch(`http://127.0.0.1:${port}/`)
}
