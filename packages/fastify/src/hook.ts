import { createGuard, type Denied, type RequestLimitOptions } from '@sluice/http'
import type { FastifyReply, FastifyRequest, HookHandlerDoneFunction } from 'fastify'
import { type AnyReply, type AnyRequest, fastify } from './platform.js'

export type RateLimitOptions = RequestLimitOptions<FastifyRequest, FastifyReply>
export type RateLimitHook = (request: AnyRequest, reply: AnyReply, done: HookHandlerDoneFunction) => void

/**
 * A limit beside the plugin's, as a hook of single routes: onRequest, or preValidation and preHandler if a callback needs
 * the body. Routes with the same hook share one limiter. A denied request is answered, and `done` is not called; errors
 * go to `done`.
 * @throws {PolicyError} for options that cannot work; docs/errors.md has the codes.
 */
export function rateLimitHook(options: RateLimitOptions): RateLimitHook {
  const guard = createGuard(options, fastify)
  // Errors go to `done`, because Fastify catches none that is thrown about a malformed path.
  return function rateLimit(request, reply, done) {
    let outcome // undefined if the request may pass
    try {
      outcome = guard(request, reply)
      if (outcome && 'answer' in outcome) return answer(reply, outcome)
    } catch (error) {
      return done(error as Error)
    }
    if (outcome === undefined) return done()
    const proceed = (denied: Denied | undefined): void => (denied ? answer(reply, denied) : done())
    outcome.then(proceed).then(undefined, done)
  }
}

/**
 * Sends the answer to a denied request: what `onDenied` returned, or the platform's problem details. Nothing is sent if
 * the answer is the reply itself or undefined: the callback has replied by itself then, or the caller has hung up.
 */
function answer(reply: AnyReply, denied: Denied): void {
  if (denied.answer !== undefined && denied.answer !== reply) reply.send(denied.answer)
}
