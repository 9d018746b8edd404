// Hono on Node.
import { createAdaptorServer } from '@hono/node-server'
import { getConnInfo } from '@hono/node-server/conninfo'
import { rateLimit } from '@sluice/hono'
import { Hono } from 'hono'
import { rateLimiter } from 'hono-rate-limiter'
import { BODY, deny, handWritten } from '../hand-written.js'
import { HAND_WRITTEN, SLUICE } from '../modes.js'
import { inSetups, limitsOf } from '../setups.js'

/** @typedef {import('hono').Context} Context */
/** @typedef {import('../frameworks.js').Framework} Framework */

export const title = 'Hono'
export const peer = 'hono-rate-limiter'
export const mostAdded = 1

/** @type {Framework['contenders']} */
export const contenders = {
  bare: () => serve(),
  ...inSetups(HAND_WRITTEN, (setup) => (limit) => {
    const { decide, write } = handWritten(setup, limit)
    return serve(async (c, next) => {
      const decision = decide(address(c))
      write(decision, c, set)
      if (decision.allowed) return next()
      return c.body(JSON.stringify(deny(decision, c, set)), 429)
    })
  }),
  ...inSetups(SLUICE, (setup) => (limit) => {
    const limits = limitsOf(setup, limit)
    return serve(...limits.map((options) => rateLimit({ ...options, connInfo: getConnInfo })))
  }),
  [peer]: ({ limit, windowMs }) => serve(rateLimiter({ limit, windowMs, keyGenerator: address })),
}

/** @param {Context} c @param {string} name @param {string} value */
const set = (c, name, value) => c.header(name, value)

/** @param {Context} c */
function address(c) {
  return getConnInfo(c).remote.address ?? ''
}

/** @param {import('hono').MiddlewareHandler[]} middleware */
function serve(...middleware) {
  const app = new Hono()
  for (const one of middleware) app.use(one)
  app.get('/', (c) => c.text(BODY))
  return /** @type {import('node:http').Server} */ (createAdaptorServer({ fetch: app.fetch }))
}
