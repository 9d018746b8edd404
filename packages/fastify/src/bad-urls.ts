import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { RateLimitHook } from './hook.js'

/*
 * A request whose path cannot be decoded, whose parameter is too long, or for which an asynchronous constraint fails, never
 * reaches a route: Fastify answers it without running a hook. Only the option `frameworkErrors` sees such requests, and it
 * cannot be set from outside once the application exists. So this file wraps the option's function where Fastify keeps it.
 */

type FrameworkErrors = (
  error: Error & { code: string; statusCode?: number },
  request: FastifyRequest,
  reply: FastifyReply,
) => void

/**
 * Counts the requests whose malformed path reaches no route, by the hook `limit`: Fastify answers these by its option
 * `frameworkErrors` and runs no hook, so that option is wrapped. A request that passes is answered as before. Does
 * nothing in an inner context, which lacks Fastify's internal symbols: the outermost one answers such requests.
 */
export function limitBadUrls(app: FastifyInstance, limit: RateLimitHook): void {
  const options = internal(app, 'fastify.options') as { frameworkErrors?: FrameworkErrors } | undefined
  const TrustingRequest = internal(app, 'fastify.Request') as (new () => object) | undefined
  if (!options || !TrustingRequest) return
  const { frameworkErrors } = options
  options.frameworkErrors = function limitFrameworkErrors(error, request, reply) {
    // Fastify makes these requests without `trustProxy`, so all callers behind a proxy would count as one.
    if (!(request instanceof TrustingRequest)) Object.setPrototypeOf(request, TrustingRequest.prototype)
    limit(request, reply, (failure) => {
      if (failure) return answerFailure(failure, app, request, reply)
      if (frameworkErrors) return frameworkErrors(error, request, reply)
      // As Fastify answers by default; 500 where an asynchronous constraint failed.
      const { code, message, statusCode = 400 } = error
      const kind = statusCode === 500 ? { error: 'Internal Server Error' } : { error: 'Bad Request', code }
      reply.code(statusCode).send({ ...kind, message, statusCode })
    })
  }
}

/**
 * Answers a request without a route by the application's error handler, as one with a route would be. `failure` is the error
 * that the limit threw. All requests without a route share one context with Fastify's own error handler, so this request gets
 * a separate context that differs only in the handler.
 */
function answerFailure(
  failure: Error,
  app: FastifyInstance,
  request: FastifyRequest,
  reply: FastifyReply,
): void {
  const context = internal(request, 'fastify.context') as object | undefined
  const errorHandler = internal(app, 'fastify.errorHandler')
  if (context && errorHandler) {
    const separate = Object.create(context, { errorHandler: { value: errorHandler } })
    setInternal(request, 'fastify.context', separate)
  }
  setInternal(reply, 'fastify.reply.isError', true)
  reply.send(failure)
}

/**
 * Reads a value that Fastify keeps on an object under a symbol. Fastify's public interface has none of its symbols, so the
 * symbol is found by its description. Only the object's own symbols count: the result is undefined where the object only
 * inherits the value, as the context of an inner plugin does from the outermost one, which alone is to be changed.
 */
function internal(object: object, description: string): unknown {
  const symbol = symbolOf(object, description)
  return symbol && Reflect.get(object, symbol)
}

/** Replaces a value as `internal` reads it. Nothing is done if the object has no such symbol, as in another version of Fastify. */
function setInternal(object: object, description: string, value: unknown): void {
  const symbol = symbolOf(object, description)
  if (symbol) Reflect.set(object, symbol, value)
}

/**
 * The symbol with this description under which an object itself, and not its prototype, keeps a value; undefined if there
 * is none.
 */
function symbolOf(object: object, description: string): symbol | undefined {
  return Object.getOwnPropertySymbols(object).find((own) => own.description === description)
}
