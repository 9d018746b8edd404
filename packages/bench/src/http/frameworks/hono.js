// Hono on Node.
import { createAdaptorServer } from '@hono/node-server'
import { getConnInfo } from '@hono/node-server/conninfo'
import { rateLimit } from '@sluice/hono'
import { Hono } from 'hono'
import { RedisStore, rateLimiter } from 'hono-rate-limiter'
import { BODY, deny, handWritten } from '../hand-written.js'
import { HAND_WRITTEN, SLUICE } from '../modes.js'
import { inSetups, limitsOf } from '../setups.js'
import { limiterOnRedis } from '../sluice-on-redis.js'

/** @typedef {import('hono').Context} Context */
/** @typedef {import('../frameworks.js').Framework} Framework */

export const title = 'Hono'
export const peer = 'hono-rate-limiter'
export const amount = 7000
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
  'one SET': ({ redis }) =>
    serve(async (c, next) => {
      await redis.set(`set:${user(c)}`, '1', 'PX', 60_000)
      return next()
    }),
  'Sluice on Redis': (given) => serve(rateLimit({ limiter: limiterOnRedis(given), key: user })),
  [`${peer} on Redis`]: ({ limit, windowMs, redis }) => {
    const client = {
      scriptLoad: (/** @type {string} */ script) =>
        /** @type {Promise<string>} */ (redis.script('LOAD', script)),
      evalsha: (/** @type {string} */ sha, /** @type {string[]} */ keys, /** @type {any[]} */ args) =>
        /** @type {Promise<any>} */ (redis.evalsha(sha, keys.length, ...keys, ...args)),
      decr: (/** @type {string} */ key) => redis.decr(key),
      del: (/** @type {string} */ key) => redis.del(key),
    }
    const store = new RedisStore({ client })
    return serve(rateLimiter({ limit, windowMs, keyGenerator: user, store }))
  },
}

/** @param {Context} c @param {string} name @param {string} value */
const set = (c, name, value) => c.header(name, value)

/** @param {Context} c */
function address(c) {
  return getConnInfo(c).remote.address ?? ''
}

/** @param {Context} c */
function user(c) {
  return String(c.req.header('x-user'))
}

/** @param {import('hono').MiddlewareHandler[]} middleware */
function serve(...middleware) {
  const app = new Hono()
  for (const one of middleware) app.use(one)
  app.get('/', (c) => c.text(BODY))
  return /** @type {import('node:http').Server} */ (createAdaptorServer({ fetch: app.fetch }))
}
