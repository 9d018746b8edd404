import { createGuard, type Denied, type GuardOptions } from '@sluice/core/http'
import type { FastifyReply, FastifyRequest, HookHandlerDoneFunction } from 'fastify'
import { type AnyReply, type AnyRequest, fastify } from './platform.js'

export type RateLimitOptions = GuardOptions<FastifyRequest, FastifyReply>
export type RateLimitHook = (request: AnyRequest, reply: AnyReply, done: HookHandlerDoneFunction) => void

/**
 * A limit beside the plugin's, as a hook of single routes: onRequest, or preValidation and preHandler if a callback needs
 * the body. Routes with the same hook share one limiter.
 * @throws {PolicyError} for options that cannot work; docs/errors.md has the codes.
 */
export function rateLimitHook(options: RateLimitOptions): RateLimitHook {
  const guard = createGuard(options, fastify)
  return function rateLimit(request, reply, done) {
    const denied = guard(request, reply)
    if (denied === undefined) return done()
    const proceed = (later: Denied | undefined): void => {
      if (!later) done()
      // The result of onDenied is sent, like that of a handler.
      else if (later.answer !== undefined && later.answer !== reply) reply.send(later.answer)
    }
    if (denied instanceof Promise) denied.then(proceed).then(undefined, done)
    else proceed(denied)
  }
}
