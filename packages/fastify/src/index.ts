import { type Decision, memoryStore, PolicyError } from '@sluice/core'
import { decisionAbout, getOrMake } from '@sluice/http'
import type { FastifyInstance, FastifyRequest, HookHandlerDoneFunction } from 'fastify'
import { limitBadUrls } from './bad-urls.js'
import { type RateLimitHook, rateLimitHook, type RateLimitOptions } from './hook.js'
import { type Common, defaultsOf, describesLimit, nameOf } from './inherited.js'
import { provideDefaults, type RouteLocation, withDefaults } from './inherited.js'
import type { AnyReply, AnyRequest } from './platform.js'
import { forEachRoute } from './routes.js'

export { byApiKey, byIp, type ByIpOptions, byUser, type KeyFunction } from '@sluice/http'
export { apiKeyKey, ipKey, joinKey, userKey } from '@sluice/http'
export { type RateLimitHook, rateLimitHook, type RateLimitOptions } from './hook.js'

declare module 'fastify' {
  interface FastifyRequest {
    /** The latest limiter's decision about this request; undefined if no limiter has counted it. */
    readonly rateLimit: Decision | undefined
  }
  interface FastifyContextConfig {
    /** Limits this route instead of the plugin's limit; false leaves it without a limit. */
    rateLimit?: RateLimitOptions | false
  }
}

/**
 * Plugin that counts each request to the routes of its context before the body is read, including requests to unknown and
 * malformed paths. Without a limit it limits only routes with `config.rateLimit`, which inherit the plugin's store, key,
 * headers and `onDenied`. Routes with the same options object share one limiter. Of nested plugins only the outermost
 * applies `config.rateLimit`.
 * @throws {PolicyError} for options that cannot work; docs/errors.md has the codes.
 * @example
 * await app.register(rateLimit, { limit: 100, window: '1m' })
 */
export async function rateLimit(app: FastifyInstance, options: RateLimitOptions): Promise<void> {
  if (!('addHook' in Object(app))) {
    const line = "app.register(rateLimit, { limit: 100, window: '1m' })"
    throw new PolicyError('INVALID_OPTION', `rateLimit is a plugin, and no hook. Write: ${line}`)
  }
  const limit = describesLimit(options) ? rateLimitHook(options) : undefined
  const outermost = !app.hasDecorator(REGISTERED)
  provideDefaults(app, options)
  const ofRoutes = new WeakMap<RateLimitOptions, Common & { hooks: WeakMap<object, RateLimitHook> }>()
  /** The hook that limits routes with the options `route` in a context. `at`, the first such route, names its limiter. */
  function hookOf(route: RateLimitOptions, context: FastifyInstance, at: RouteLocation): RateLimitHook {
    const outer = defaultsOf(context)
    const make = () => ({ name: nameOf(at, outer.name), store: memoryStore(), hooks: new WeakMap() })
    const common = getOrMake(ofRoutes, route, make)
    return getOrMake(common.hooks, outer, () => rateLimitHook(withDefaults(route, outer, common)))
  }
  // If the plugin is registered around this context too, only the outer one applies `config.rateLimit`: both would count.
  if (outermost) {
    app.decorate(REGISTERED, true)
    app.decorateRequest('rateLimit', { getter: latestDecision })
    app.addHook('onRoute', function ({ config, method, url }) {
      if (config?.rateLimit) hookOf(config.rateLimit, this, { method, url })
    })
  }
  /** Counts a request under the limit of its route, or else the plugin's. `false` in a route's configuration is no limit. */
  function rateLimit(this: void, request: AnyRequest, reply: AnyReply, next: HookHandlerDoneFunction): void {
    const { config, method, url } = request.routeOptions
    const route = config?.rateLimit
    const ofRoute = route && outermost && hookOf(route, request.server, { method, url })
    const hook = route === undefined ? limit : ofRoute
    if (hook) hook(request, reply, next)
    else next()
  }
  app.addHook('onRequest', rateLimit)
  // onRoute does not see routes that were added before the plugin was loaded.
  if (outermost) {
    forEachRoute(app, rateLimit, ({ config, server }) => {
      if (config.rateLimit) hookOf(config.rateLimit, server, config)
    })
  }
  if (limit) limitBadUrls(app, limit)
}

/** The getter of `request.rateLimit`: the latest decision about the request, or undefined. */
function latestDecision(this: FastifyRequest): Decision | undefined {
  return decisionOf(this)
}

const REGISTERED = Symbol.for('sluice.fastify.rateLimit')

// As fastify-plugin does. Otherwise the plugin would have a context of its own, and limit none of the routes beside it.
Object.defineProperty(rateLimit, Symbol.for('skip-override'), { value: true })

/**
 * The decision about a request, for example to settle it: the latest one, or that of the limiter with the given name.
 * undefined if no such limiter has counted the request.
 */
export const decisionOf: (request: AnyRequest, limiter?: string) => Decision | undefined = decisionAbout
