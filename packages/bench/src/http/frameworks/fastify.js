import fastifyRateLimit from '@fastify/rate-limit'
import { rateLimit } from '@sluice/fastify'
import fastify from 'fastify'
import { BODY, deny, handWritten } from '../hand-written.js'
import { HAND_WRITTEN, SLUICE } from '../modes.js'
import { inSetups, limitsOf } from '../setups.js'

/** @typedef {import('fastify').FastifyInstance} App */
/** @typedef {import('../frameworks.js').Framework} Framework */

export const title = 'Fastify'
export const peer = '@fastify/rate-limit'
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
}

/** @param {import('fastify').FastifyReply} reply @param {string} name @param {string} value */
const set = (reply, name, value) => reply.header(name, value)

/** @param {(app: App) => unknown} plugIn */
async function serve(plugIn) {
  const app = fastify()
  await plugIn(app)
  app.get('/', (_request, reply) => void reply.send(BODY))
  await app.ready()
  return app.server
}
