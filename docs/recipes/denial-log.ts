import { createLimiter, gcra, type Store } from '@sluice/core'
import { rateLimit } from '@sluice/express'
import { hashKey } from '@sluice/metrics'
import express, { type Express } from 'express'
import { AsyncLocalStorage } from 'node:async_hooks'
import { randomUUID } from 'node:crypto'
import { type DestinationStream, pino } from 'pino'

/**
 * Logs a line for each denied request and nothing else: the caller by a hash, the policy, the wait, and the id of the request, which
 * its other lines have too. Listeners run in the context of their request, so the id need not be passed along.
 */
export function loggedApp(lines: DestinationStream, store: Store): Express {
  const log = pino({}, lines)
  const ids = new AsyncLocalStorage<string>()
  const limiter = createLimiter({ name: 'api', policies: [gcra({ limit: 100, window: '1m' })], store })
  limiter.on('decision', ({ key, decision: { allowed, policy, retryAfterMs } }) => {
    // An address is soon guessed from a plain hash: an HMAC with a secret is better where logs go to others.
    if (!allowed) log.info({ key: hashKey(key), policy, retryAfterMs, id: ids.getStore() }, 'denied')
  })
  const app = express()
  app.use((_req, res, next) => {
    const id = randomUUID()
    res.set('X-Request-Id', id)
    ids.run(id, next)
  })
  app.use(rateLimit({ limiter }))
  app.get('/', (_req, res) => void res.json({ hello: 'world' }))
  return app
}
