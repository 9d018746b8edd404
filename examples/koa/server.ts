import Router from '@koa/router'
import { createLimiter, gcra, slidingLog, tokenBucket } from '@sluice/core'
import { byUser, decisionOf, rateLimit } from '@sluice/koa'
import Koa, { type Context } from 'koa'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'

const app = new Koa()
const router = new Router()

// By IP, on every route: 20 in any 10 seconds, wherever they begin.
app.use(rateLimit({ name: 'all', policies: [slidingLog({ limit: 20, window: '10s' })], headers: 'ietf' }))

router.get('/', (ctx) => {
  ctx.body = { left: decisionOf(ctx)?.remaining }
})

// By uid:action. The bucket holds 3, so a user may be quick for a moment, and refills with 5 a minute.
const orderLimit = rateLimit({
  name: 'create-order',
  policies: [tokenBucket({ limit: 5, window: '1m', capacity: 3 })],
  key: byUser(userOf, 'create-order'),
  headers: 'ietf',
})
router.post('/orders', orderLimit, (ctx) => {
  ctx.status = 201
  ctx.body = { ordered: true }
})

// A cost that is known when the work is done: 100 tokens are charged on entry, and what they were short of or too
// many is settled afterwards.
const tokens = createLimiter({ name: 'tokens', policies: [gcra({ limit: 1000, window: '1m' })] })
const chatLimit = rateLimit({ limiter: tokens, key: byUser(userOf), cost: () => 100, headers: 'ietf' })
router.post('/chat', chatLimit, async (ctx) => {
  const used = Number(ctx.query['tokens'] ?? 100)
  await decisionOf(ctx, 'tokens')?.settle(Number.isInteger(used) ? Math.min(Math.max(used, 1), 1000) : 100)
  ctx.body = { used }
})

/** A real service takes the user from a session or token that it has verified, never from a plain header. */
function userOf(ctx: Context): string | undefined {
  return ctx.get('x-user')
}

const server = app.use(router.routes()).listen(Number(process.env['PORT'] ?? 3000), '127.0.0.1')
process.once('SIGINT', () => {
  server.close()
  server.closeAllConnections()
})
await once(server, 'listening')
console.log(`Serving on http://127.0.0.1:${(server.address() as AddressInfo).port}`)
