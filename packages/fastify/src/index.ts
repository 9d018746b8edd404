import type { Decision } from '@sluice/core'
import { createGuard, decisionAbout, type Denied, type GuardOptions } from '@sluice/core/http'
import type { FastifyInstance, FastifyReply, FastifyRequest, HookHandlerDoneFunction } from 'fastify'
import { limitBadUrls } from './bad-urls.js'
import { inheritFrom, isLimit, type Place, routeOptions } from './inherited.js'
import { type AnyReply, type AnyRequest, fastify } from './platform.js'

export { byApiKey, byIp, type ByIpOptions, byUser, type KeyFunction } from '@sluice/core/http'
export { apiKeyKey, ipKey, joinKey, userKey } from '@sluice/core/http'

export type RateLimitOptions = GuardOptions<FastifyRequest, FastifyReply>
export type RateLimitHook = (request: AnyRequest, reply: AnyReply, done: HookHandlerDoneFunction) => void

declare module 'fastify' {
  interface FastifyRequest {
    /** What the latest limiter decided about this request; undefined where none has counted it. */
    readonly rateLimit: Decision | undefined
  }
  interface FastifyContextConfig {
    /** Limits this route in place of the plugin's limit; false leaves it without. */
    rateLimit?: RateLimitOptions | false
  }
}

/**
 * Plugin that counts each request to the routes of its context, unknown and malformed paths too, before the body is read.
 * Without a limit it limits only routes that have `config.rateLimit`. These inherit the plugin's store, key, headers and
 * `onDenied`. Routes given the same options object share one limiter.
 * @throws {PolicyError} when an option cannot work; see docs/errors.md for the codes.
 */
export async function rateLimit(app: FastifyInstance, options: RateLimitOptions): Promise<void> {
  const limit = isLimit(options) ? rateLimitHook(options) : undefined
  const outermost = !app.hasDecorator(REGISTERED)
  inheritFrom(app, options)
  const ofRoutes = new WeakMap<RateLimitOptions, RateLimitHook>()
  const limitOf = (route: RateLimitOptions, context: FastifyInstance, place: Place): RateLimitHook => {
    let hook = ofRoutes.get(route)
    if (!hook) ofRoutes.set(route, (hook = rateLimitHook(routeOptions(route, context, place))))
    return hook
  }
  // Where the plugin is registered around this context too, the outer one minds what routes say, or both would.
  if (outermost) {
    app.decorate(REGISTERED, true)
    app.decorateRequest('rateLimit', {
      getter() {
        return decisionOf(this)
      },
    })
    app.addHook('onRoute', function ({ config, method, url }) {
      if (config?.rateLimit) limitOf(config.rateLimit, this, { method, url })
    })
  }
  // Asked on each request, as onRoute does not see the routes that were added before the plugin was loaded.
  app.addHook('onRequest', function rateLimit(request, reply, next) {
    const { config, method, url } = request.routeOptions
    const own = config?.rateLimit
    const hook = own === undefined ? limit : own && outermost && limitOf(own, request.server, { method, url })
    if (hook) hook(request, reply, next)
    else next()
  })
  if (limit) limitBadUrls(app, limit)
}

const REGISTERED = Symbol.for('sluice.fastify.rateLimit')

// What fastify-plugin does: else the plugin would have a context of its own, and limit none of the routes beside it.
Object.defineProperty(rateLimit, Symbol.for('skip-override'), { value: true })

/**
 * A limit beside the plugin's, as a hook of single routes: onRequest, or preValidation and preHandler where a callback
 * needs the body. Routes given the same hook share one limiter.
 * @throws {PolicyError} when an option cannot work; see docs/errors.md for the codes.
 */
export function rateLimitHook(options: RateLimitOptions): RateLimitHook {
  const guard = createGuard(options, fastify)
  return function rateLimit(request, reply, done) {
    const proceed = (denied: Denied | undefined): void => {
      if (!denied) done()
      // What onDenied returns is sent, as what a handler returns.
      else if (denied.answer !== undefined && denied.answer !== reply) reply.send(denied.answer)
    }
    const denied = guard(request, reply)
    if (denied instanceof Promise) denied.then(proceed).then(undefined, done)
    else proceed(denied)
  }
}

/**
 * The decision about a request, for example to settle it: the latest, or that of the limiter of the given name.
 * Undefined where none has counted the request.
 */
export function decisionOf(request: AnyRequest, limiter?: string): Decision | undefined {
  return decisionAbout(request, limiter)
}
