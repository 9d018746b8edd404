import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { RateLimitHook } from './index.js'

/*
 * A path that cannot be decoded, or a parameter that is too long, never reaches a route: Fastify answers it without any
 * hook. The one place that sees such requests is the option `frameworkErrors`, which cannot be set from outside when
 * the application exists already. So it is set where Fastify keeps it, around the application's own.
 */

type FrameworkErrors = (
  error: Error & { code: string; statusCode?: number },
  request: FastifyRequest,
  reply: FastifyReply,
) => void

/** Limits the requests that reach no route. Only the outermost context of an application answers them. */
export function limitBadUrls(app: FastifyInstance, limit: RateLimitHook): void {
  const options = internal(app, 'fastify.options') as { frameworkErrors?: FrameworkErrors } | undefined
  const TrustingRequest = internal(app, 'fastify.Request') as { prototype: object } | undefined
  if (!options || !TrustingRequest) return
  const { frameworkErrors: answer = answerAsFastify } = options
  options.frameworkErrors = function limitFrameworkErrors(error, request, reply) {
    // Fastify makes them without `trustProxy`: all callers behind a proxy would be one.
    if (!(request instanceof (TrustingRequest as never)))
      Object.setPrototypeOf(request, TrustingRequest.prototype)
    limit(request, reply, (failure) => {
      if (failure) reply.send(failure)
      else answer(error, request, reply)
    })
  }
}

/** What Fastify sends where the application has no `frameworkErrors` of its own. */
function answerAsFastify(
  ...[{ code, message, statusCode = 400 }, , reply]: Parameters<FrameworkErrors>
): void {
  reply.code(statusCode).send({ error: 'Bad Request', code, message, statusCode })
}

/** What the outermost context keeps under a symbol of Fastify's. Undefined in the contexts inside, which inherit it. */
function internal(app: FastifyInstance, description: string): unknown {
  const symbol = Object.getOwnPropertySymbols(app).find((own) => own.description === description)
  return symbol && Reflect.get(app, symbol)
}
