import { createLimiter, slidingLog } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { rateLimit } from '@sluice/express'
import express from 'express'

const { REDIS_URL = 'redis://localhost:6379', PORT = '3000', PROXIES = '0' } = process.env
const store = redisStore(REDIS_URL)
// Without Redis each process goes on with the same limit for itself ('local', the default of onStoreError).
const policies = [slidingLog({ limit: 100, window: '1m' })]
const limiter = createLimiter({ name: 'api', policies, store })

// How many proxies stand in front, each of which appends to X-Forwarded-For. With more than there are, callers choose their address.
const app = express().set('trust proxy', Number(PROXIES))
let isStopping = false

// Before the limit: probes are not counted. Neither asks Redis, or an outage of Redis would take every process out of service,
// although each of them goes on. Liveness says that the process answers, readiness that it wants more requests.
app.get('/live', (_req, res) => void res.send('ok'))
app.get('/ready', (_req, res) => void res.status(isStopping ? 503 : 200).send(isStopping ? 'stopping' : 'ok'))

app.use(rateLimit({ limiter }))
app.get('/', (_req, res) => void res.send('hello'))

// Counts in Redis from the first request on, or is ready without it: a start must not depend on Redis either.
await store.ready().catch(({ message }: Error) => console.error(message))
const server = app.listen(Number(PORT))

process.once('SIGTERM', () => {
  isStopping = true
  server.close(() => void limiter.close().then(() => store.close()))
  server.closeIdleConnections()
})
