import { rateLimit } from '@sluice/express'
import express from 'express'
import { rateLimit as expressRateLimit } from 'express-rate-limit'
import { createServer } from 'node:http'
import { BODY, deny, handWritten } from '../hand-written.js'
import { HAND_WRITTEN, SLUICE } from '../modes.js'
import { inSetups, limitsOf } from '../setups.js'

/** @typedef {import('express').RequestHandler} RequestHandler */
/** @typedef {import('../frameworks.js').Framework} Framework */

export const title = 'Express'
export const peer = 'express-rate-limit'
export const mostAdded = 0.5

/** @type {Framework['contenders']} */
export const contenders = {
  bare: () => serve(),
  ...inSetups(HAND_WRITTEN, (setup) => (limit) => {
    const { decide, write } = handWritten(setup, limit)
    return serve((req, res, next) => {
      const decision = decide(req.ip ?? '')
      write(decision, res, set)
      if (decision.allowed) return next()
      res.status(429).end(JSON.stringify(deny(decision, res, set)))
    })
  }),
  ...inSetups(SLUICE, (setup) => (limit) => serve(...limitsOf(setup, limit).map(rateLimit))),
  [peer]: ({ limit, windowMs }) => serve(expressRateLimit({ limit, windowMs })),
}

/** @param {import('express').Response} res @param {string} name @param {string} value */
const set = (res, name, value) => res.setHeader(name, value)

/** An application with one route, behind middleware. @param {RequestHandler[]} middleware */
export function serve(...middleware) {
  const app = express()
  if (middleware.length > 0) app.use(...middleware)
  app.get('/', (_req, res) => void res.send(BODY))
  return createServer(app)
}
