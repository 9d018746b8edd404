import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { RateLimitHook } from './hook.js'

/*
 * A request whose path cannot be decoded, or whose parameter is too long, never reaches a route: Fastify answers it without
 * running a hook. Only the option `frameworkErrors` sees such requests, and it cannot be set from outside once the
 * application exists. This file therefore wraps the application's own handler where Fastify keeps it.
 */

type FrameworkErrors = (
  error: Error & { code: string; statusCode?: number },
  request: FastifyRequest,
  reply: FastifyReply,
) => void

/** Limits the requests that reach no route. Does nothing in inner contexts, because the outermost one answers them. */
export function limitBadUrls(app: FastifyInstance, limit: RateLimitHook): void {
  const options = internal(app, 'fastify.options') as { frameworkErrors?: FrameworkErrors } | undefined
  const TrustingRequest = internal(app, 'fastify.Request') as { prototype: object } | undefined
  if (!options || !TrustingRequest) return
  const { frameworkErrors: answer = answerAsFastify } = options
  options.frameworkErrors = function limitFrameworkErrors(error, request, reply) {
    // Fastify makes these requests without `trustProxy`, so all callers behind a proxy would count as one.
    if (!(request instanceof (TrustingRequest as never)))
      Object.setPrototypeOf(request, TrustingRequest.prototype)
    limit(request, reply, (failure) => {
      if (failure) reply.send(failure)
      else answer(error, request, reply)
    })
  }
}

/** What Fastify sends if the application has no `frameworkErrors` of its own. */
function answerAsFastify(
  ...[{ code, message, statusCode = 400 }, , reply]: Parameters<FrameworkErrors>
): void {
  reply.code(statusCode).send({ error: 'Bad Request', code, message, statusCode })
}

/** The value that a context itself keeps under one of Fastify's symbols; undefined in inner contexts, which inherit it. */
function internal(app: FastifyInstance, description: string): unknown {
  const symbol = Object.getOwnPropertySymbols(app).find((own) => own.description === description)
  return symbol && Reflect.get(app, symbol)
}
