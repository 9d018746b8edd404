import fastifyRateLimit from '@fastify/rate-limit'
import { rateLimit } from '@sluice/fastify'
import fastify from 'fastify'
import { BODY, deny, handWritten } from '../hand-written.js'
import { HAND_WRITTEN, SLUICE } from '../modes.js'
import { inSetups, limitsOf } from '../setups.js'
import { limiterOnRedis } from '../sluice-on-redis.js'

/** @typedef {import('fastify').FastifyInstance} App */
/** @typedef {import('../frameworks.js').Framework} Framework */

export const title = 'Fastify'
export const peer = '@fastify/rate-limit'
export const amount = 8000
export const mostAdded = 1

/** @type {Framework['contenders']} */
export const contenders = {
  bare: () => serve(() => undefined),
  ...inSetups(HAND_WRITTEN, (setup) => (limit) => {
    const { decide, write } = handWritten(setup, limit)
    return serve((app) =>
      app.addHook('onRequest', (request, reply, done) => {
        const decision = decide(request.ip)
        write(decision, reply, set)
        if (decision.allowed) return done()
        reply.code(429).send(JSON.stringify(deny(decision, reply, set)))
      }),
    )
  }),
  ...inSetups(
    SLUICE,
    (setup) => (limit) =>
      serve(async (app) => {
        for (const options of limitsOf(setup, limit)) await app.register(rateLimit, options)
      }),
  ),
  [peer]: ({ limit, windowMs }) =>
    serve((app) => app.register(fastifyRateLimit, { max: limit, timeWindow: windowMs })),
  'one SET': ({ redis }) =>
    serve((app) =>
      app.addHook(
        'onRequest',
        async (request) => void (await redis.set(`set:${user(request)}`, '1', 'PX', 60_000)),
      ),
    ),
  'Sluice on Redis': (given) =>
    serve((app) => app.register(rateLimit, { limiter: limiterOnRedis(given), key: user })),
  [`${peer} on Redis`]: ({ limit, windowMs, redis }) =>
    serve((app) =>
      app.register(fastifyRateLimit, { max: limit, timeWindow: windowMs, redis, keyGenerator: user }),
    ),
}

/** @param {import('fastify').FastifyReply} reply @param {string} name @param {string} value */
const set = (reply, name, value) => reply.header(name, value)

/** @param {import('fastify').FastifyRequest} request */
function user(request) {
  return String(request.headers['x-user'])
}

/** @param {(app: App) => unknown} plugIn */
async function serve(plugIn) {
  const app = fastify()
  await plugIn(app)
  app.get('/', (_request, reply) => void reply.send(BODY))
  await app.ready()
  return app.server
}
