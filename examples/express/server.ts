import { leakyBucket, slidingLog, slidingWindow, tokenBucket } from '@sluice/core'
import { byApiKey, byUser, rateLimit } from '@sluice/express'
import express, { type Request } from 'express'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'

/** Every limit of this service. Where a list has several policies, all of them must admit a request. */
export const limits = {
  public: [slidingLog({ limit: 20, window: '2s' })],
  orders: [tokenBucket({ limit: 5, window: '1s', capacity: 10 })],
  search: [slidingWindow({ limit: 10, window: '1s' })],
  login: [slidingLog({ limit: 1, window: '1s' }), slidingLog({ limit: 5, window: '10s' })],
  export: [leakyBucket({ limit: 50, window: '1s', capacity: 100 })],
}

const app = express()

// By IP, which is the default. A sliding log is exact: 20 in any 2 seconds, wherever they begin.
app.get('/public', rateLimit({ name: 'public', policies: limits.public }), (_req, res) => {
  res.json({ message: 'hello' })
})

// By user. The bucket holds 10, so a user may be quick for a moment, and refills with 5 a second.
const byCustomer = byUser(userOf, 'create-order')
const orderLimit = rateLimit({ name: 'create-order', policies: limits.orders, key: byCustomer })
app.post('/orders', orderLimit, (_req, res) => {
  res.status(201).json({ ordered: true })
})

// By API key, with the RateLimit headers of the IETF draft in place of X-RateLimit.
const byClient = byApiKey('x-api-key')
const searchLimit = rateLimit({ name: 'search', policies: limits.search, key: byClient, headers: 'ietf' })
app.get('/search', searchLimit, (_req, res) => {
  res.json({ found: [] })
})

// Two policies at once: one against haste, one against patience. A denial charges neither.
const loginLimit = rateLimit({ name: 'login', policies: limits.login, key: byUser(userOf, 'login') })
app.post('/login', loginLimit, (_req, res) => {
  res.json({ welcome: true })
})

// A cost: an export takes as many units as it has rows.
const exportLimit = rateLimit({ name: 'export', policies: limits.export, key: byClient, cost: rowsOf })
app.post('/export', exportLimit, (req, res) => {
  res.json({ rows: rowsOf(req) })
})

/** A real service takes the user from a session or token that it has verified, never from a plain header. */
function userOf(req: Request): string | undefined {
  return req.get('x-user')
}

/** Kept within bounds, because the caller chooses it: 0 rows would cost nothing. */
function rowsOf(req: Request): number {
  const rows = Number(req.query['rows'])
  return Number.isInteger(rows) ? Math.min(Math.max(rows, 1), 1000) : 1
}

export const server = app.listen(Number(process.env['PORT'] ?? 3000), '127.0.0.1')
process.once('SIGINT', () => {
  server.close()
  server.closeAllConnections()
})
await once(server, 'listening')
console.log(`Serving on http://127.0.0.1:${(server.address() as AddressInfo).port}`)
