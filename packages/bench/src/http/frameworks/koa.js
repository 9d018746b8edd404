import { gcra } from '@sluice/core'
import { rateLimit } from '@sluice/koa'
import Koa from 'koa'
import koaRateLimit from 'koa-ratelimit'
import { createServer } from 'node:http'
import { BODY, handWritten, PROBLEM } from '../hand-written.js'
import { limiterOnRedis } from '../sluice-on-redis.js'

/** @typedef {import('koa').Middleware} Middleware */
/** @typedef {import('../frameworks.js').Framework} Framework */

export const title = 'Koa'
export const peer = 'koa-ratelimit'
export const amount = 7000
export const mostAdded = 1

/** @type {Framework['contenders']} */
export const contenders = {
  bare: () => serve(),
  'hand-written': (limit) => {
    const decide = handWritten(limit)
    return serve((ctx, next) => {
      const { limit, remaining, reset, denial } = decide(ctx.ip)
      ctx.set('X-RateLimit-Limit', limit)
      ctx.set('X-RateLimit-Remaining', remaining)
      ctx.set('X-RateLimit-Reset', reset)
      if (!denial) return next()
      ctx.status = 429
      ctx.set('Cache-Control', 'no-store')
      ctx.set('Retry-After', denial.retryAfter)
      ctx.set('Content-Type', PROBLEM)
      ctx.body = JSON.stringify(denial.problem)
    })
  },
  Sluice: ({ limit, windowMs }) => serve(rateLimit({ policies: [gcra({ limit, window: windowMs })] })),
  [peer]: ({ limit, windowMs }) =>
    serve(koaRateLimit({ driver: 'memory', db: new Map(), max: limit, duration: windowMs })),
  'one SET': ({ redis }) =>
    serve(async (ctx, next) => {
      await redis.set(`set:${user(ctx)}`, '1', 'PX', 60_000)
      return next()
    }),
  'Sluice on Redis': (given) => serve(rateLimit({ limiter: limiterOnRedis(given), key: user })),
  [`${peer} on Redis`]: ({ limit, windowMs, redis }) =>
    serve(
      koaRateLimit({
        driver: 'redis',
        db: /** @type {any} */ (redis),
        max: limit,
        duration: windowMs,
        id: user,
      }),
    ),
}

/** @param {import('koa').Context} ctx */
function user(ctx) {
  return ctx.get('x-user')
}

/** @param {Middleware[]} middleware */
function serve(...middleware) {
  const app = new Koa()
  for (const one of middleware) app.use(one)
  app.use((ctx) => void (ctx.body = BODY))
  const answer = app.callback()
  return createServer((req, res) => void answer(req, res))
}
