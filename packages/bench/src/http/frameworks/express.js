import { rateLimit } from '@sluice/express'
import express from 'express'
import { rateLimit as expressRateLimit } from 'express-rate-limit'
import RateLimitRedis from 'rate-limit-redis'
import { createServer } from 'node:http'
import { BODY, denialOf, handWritten, PROBLEM } from '../hand-written.js'
import { HAND_WRITTEN, SLUICE } from '../modes.js'
import { inSetups, limitsOf } from '../setups.js'
import { limiterOnRedis } from '../sluice-on-redis.js'

/** @typedef {import('express').RequestHandler} RequestHandler */
/** @typedef {import('../frameworks.js').Framework} Framework */

export const title = 'Express'
export const peer = 'express-rate-limit'
export const amount = 2000
export const mostAdded = 0.5

/** @type {Framework['contenders']} */
export const contenders = {
  bare: () => serve(),
  ...inSetups(HAND_WRITTEN, (setup) => (limit) => {
    const { decide, write } = handWritten(setup, limit)
    return serve((req, res, next) => {
      const decision = decide(req.ip ?? '')
      write(decision, res, (res, name, value) => res.setHeader(name, value))
      if (decision.allowed) return next()
      const { retryAfter, problem } = denialOf(decision)
      res.setHeader('Cache-Control', 'no-store')
      res.setHeader('Retry-After', retryAfter)
      res.setHeader('Content-Type', PROBLEM)
      res.status(429).end(JSON.stringify(problem))
    })
  }),
  ...inSetups(SLUICE, (setup) => (limit) => serve(...limitsOf(setup, limit).map(rateLimit))),
  [peer]: ({ limit, windowMs }) => serve(expressRateLimit({ limit, windowMs })),
  'one SET': ({ redis }) =>
    serve(async (req, _res, next) => {
      await redis.set(`set:${user(req)}`, '1', 'PX', 60_000)
      next()
    }),
  'Sluice on Redis': (given) => serve(rateLimit({ limiter: limiterOnRedis(given), key: user })),
  [`${peer} on Redis`]: ({ limit, windowMs, redis }) => {
    const sendCommand = /** @type {(...command: string[]) => Promise<any>} */ (
      (command, ...args) => redis.call(command, ...args)
    )
    return serve(
      expressRateLimit({ limit, windowMs, keyGenerator: user, store: new RateLimitRedis({ sendCommand }) }),
    )
  },
}

/** @param {import('express').Request} req */
function user(req) {
  return String(req.headers['x-user'])
}

/** @param {RequestHandler[]} middleware */
function serve(...middleware) {
  const app = express()
  if (middleware.length > 0) app.use(...middleware)
  app.get('/', (_req, res) => void res.send(BODY))
  return createServer(app)
}
