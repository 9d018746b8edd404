import { createLimiter, createSemaphore, memoryStore, slidingLog, tokenBucket } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { rateLimit } from '@sluice/express'
import { observe, topKeys } from '@sluice/metrics'
import express, { type Request } from 'express'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import * as promClient from 'prom-client'

const { REDIS_URL } = process.env
const local = memoryStore()
const store = REDIS_URL === undefined ? local : redisStore(REDIS_URL)

const orders = createLimiter({ name: 'orders', policies: [tokenBucket({ limit: 5, window: '1s' })], store })
// Decides the same calls by another limit and denies none: would raising the limit help?
const candidate = createLimiter({
  name: 'orders-6',
  policies: [tokenBucket({ limit: 6, window: '1s' })],
  store,
  enforce: false,
})
const search = createLimiter({
  name: 'search',
  policies: [slidingLog({ limit: 20, window: '1s' }), slidingLog({ limit: 1500, window: '1m' })],
  store: local,
})
const reports = createSemaphore({ name: 'reports', limit: 2, store: local })

const registry = new promClient.Registry()
const sink = { prometheus: promClient, registry }
for (const limiter of [orders, candidate, search]) observe(limiter, { ...sink, tag: tierOf })
observe(reports, sink)
observe(local, { ...sink, name: 'local' })
const top = topKeys(orders)

const app = express()

// The candidate first: it has to see the calls that the enforced limiter denies.
app.post(
  '/orders',
  rateLimit({ limiter: candidate, key: userOf, headers: false }),
  rateLimit({ limiter: orders, key: userOf }),
  (_req, res) => {
    res.status(201).json({ ordered: true })
  },
)

app.get('/search', rateLimit({ limiter: search, key: userOf }), (_req, res) => {
  res.json({ found: [] })
})

app.get('/report', async (_req, res) => {
  await using permit = await reports.acquire('', { maxWait: '5s' })
  if (permit.allowed) await sleep(100)
  res.status(permit.allowed ? 200 : 503).json({ waitedMs: permit.waitMs })
})

// For operators only: keys are data of callers.
app.get('/top-keys', (_req, res) => {
  res.json({ denied: top.denied(), all: top.all() })
})

app.get('/metrics', async (_req, res) => {
  res.type(registry.contentType).send(await registry.metrics())
})

/** A real service takes the user from a session or token that it has verified, never from a plain header. */
function userOf(req: Request): string {
  return req.get('x-user') ?? 'free:anonymous'
}

function tierOf(key: string): string {
  return key.includes('pro') ? 'pro' : 'free'
}

export const server = app.listen(Number(process.env['PORT'] ?? 3000), '127.0.0.1')
process.once('SIGINT', () => {
  server.close()
  server.closeAllConnections()
})
server.once('close', () => void store.close())
await once(server, 'listening')
console.log(`Serving on http://127.0.0.1:${(server.address() as AddressInfo).port}`)
