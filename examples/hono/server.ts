import { serve } from '@hono/node-server'
import { getConnInfo } from '@hono/node-server/conninfo'
import { createLimiter, gcra, slidingLog, tokenBucket } from '@sluice/core'
import { byUser, decisionOf, rateLimit } from '@sluice/hono'
import { type Context, Hono } from 'hono'

const app = new Hono()

// By IP, on every route: 20 in any 10 seconds, wherever they begin.
const all = [slidingLog({ limit: 20, window: '10s' })]
app.use(rateLimit({ name: 'all', policies: all, headers: 'ietf', connInfo: getConnInfo }))

app.get('/', (c) => c.json({ left: c.get('rateLimit')?.remaining }))

// By uid:action. The bucket holds 3, so a user may be quick for a moment, and refills with 5 a minute.
const orderLimit = rateLimit({
  name: 'create-order',
  policies: [tokenBucket({ limit: 5, window: '1m', capacity: 3 })],
  key: byUser(userOf, 'create-order'),
  headers: 'ietf',
  connInfo: getConnInfo,
})
app.post('/orders', orderLimit, (c) => c.json({ ordered: true }, 201))

// A cost that is known when the work is done: 100 tokens are charged on entry, and what they were short of or too
// many is settled afterwards.
const tokens = createLimiter({ name: 'tokens', policies: [gcra({ limit: 1000, window: '1m' })] })
const chatLimit = rateLimit({ limiter: tokens, key: byUser(userOf), cost: () => 100, connInfo: getConnInfo })
app.post('/chat', chatLimit, async (c) => {
  const used = Number(c.req.query('tokens') ?? 100)
  await decisionOf(c, 'tokens')?.settle(Number.isInteger(used) ? Math.min(Math.max(used, 1), 1000) : 100)
  return c.json({ used })
})

/** A real service takes the user from a session or token that it has verified, never from a plain header. */
function userOf(c: Context): string | undefined {
  return c.req.header('x-user')
}

const port = Number(process.env['PORT'] ?? 3000)
const server = serve({ fetch: app.fetch, hostname: '127.0.0.1', port }, (info) =>
  console.log(`Serving on http://127.0.0.1:${info.port}`),
)
process.once('SIGINT', () => server.close())
