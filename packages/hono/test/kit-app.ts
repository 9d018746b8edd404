import { createAdaptorServer } from '@hono/node-server'
import { getConnInfo } from '@hono/node-server/conninfo'
import { type Context, Hono } from 'hono'
import type { Server } from 'node:http'
import { Readable } from 'node:stream'
import { type Adapter, listening } from '@sluice/harness/adapters'
import { rateLimit } from '../src/index.js'

const NO_SETTING = 'Hono has no setting, and the adapter an option for a number'

export const honoAdapter: Adapter<Context, Context> = {
  name: 'Hono',
  serve({ routes, proxyTrust, before, onError }) {
    const app = new Hono().onError((error, c) => {
      onError(error)
      return c.text('', 500)
    })
    if (before) {
      app.use(async (_c, next) => {
        await before()
        await next()
      })
    }
    const trustProxy = typeof proxyTrust === 'number' ? proxyTrust : 0
    for (const { path, limits, answer } of routes) {
      for (const limit of limits) app.use(path, rateLimit({ ...limit, connInfo: getConnInfo, trustProxy }))
      app.all(path, async () => {
        const { status = 200, headers, body } = await answer()
        const text = typeof body === 'string' ? body : (Readable.toWeb(Readable.from(body)) as ReadableStream)
        return new Response(text, { status, headers: { ...headers, 'Content-Type': 'text/plain' } })
      })
    }
    return listening((createAdaptorServer(app) as Server).listen(0, '127.0.0.1'))
  },
  header: (c, name) => c.req.header(name),
  method: (c) => c.req.method,
  status: (c) => c.res.status,
  answerDenial: (c, _same, text) => c.text(text),
  lacks: { 'trusting all proxies': NO_SETTING, 'trusting proxies by address': NO_SETTING },
}
