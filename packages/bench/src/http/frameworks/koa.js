import { rateLimit } from '@sluice/koa'
import Koa from 'koa'
import koaRateLimit from 'koa-ratelimit'
import { createServer } from 'node:http'
import { BODY, deny, handWritten } from '../hand-written.js'
import { HAND_WRITTEN, SLUICE } from '../modes.js'
import { inSetups, limitsOf } from '../setups.js'

/** @typedef {import('koa').Middleware} Middleware */
/** @typedef {import('../frameworks.js').Framework} Framework */

export const title = 'Koa'
export const peer = 'koa-ratelimit'
export const mostAdded = 1

/** @type {Framework['contenders']} */
export const contenders = {
  bare: () => serve(),
  ...inSetups(HAND_WRITTEN, (setup) => (limit) => {
    const { decide, write } = handWritten(setup, limit)
    return serve((ctx, next) => {
      const decision = decide(ctx.ip)
      write(decision, ctx, set)
      if (decision.allowed) return next()
      ctx.status = 429
      ctx.body = JSON.stringify(deny(decision, ctx, set))
    })
  }),
  ...inSetups(
    SLUICE,
    (setup) => (limit) => serve(...limitsOf(setup, limit).map((options) => rateLimit(options))),
  ),
  [peer]: ({ limit, windowMs }) =>
    serve(koaRateLimit({ driver: 'memory', db: new Map(), max: limit, duration: windowMs })),
}

/** @param {import('koa').Context} ctx @param {string} name @param {string} value */
const set = (ctx, name, value) => ctx.set(name, value)

/** An application with one answer, behind middleware. @param {Middleware[]} middleware */
export function serve(...middleware) {
  const app = new Koa()
  for (const one of middleware) app.use(one)
  app.use((ctx) => void (ctx.body = BODY))
  const answer = app.callback()
  return createServer((req, res) => void answer(req, res))
}
