import { digest, SETTINGS } from '@sluice/core/internal'
import { INHERITED, pick } from '@sluice/http'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { RateLimitOptions } from './hook.js'

/*
 * Routes inherit every option of the plugin that is not part of the limit itself. A route with only `{ limit, window }`
 * thus counts in the plugin's store, by the plugin's key, and denies as the plugin does. If the plugin was given a limiter,
 * the options of limiters come from that one.
 */

const { byLimiters, byRequests } = INHERITED
const DEFAULT_NAMES = ['name', ...byLimiters, ...byRequests] as const

export type RouteLocation = Pick<FastifyRequest['routeOptions'], 'method' | 'url'>

const DEFAULTS = Symbol('sluice.defaults')
type AppContext = FastifyInstance & { [DEFAULTS]?: RateLimitOptions }

/**
 * Whether the plugin's options describe a limit of its own, and not only defaults for its routes: they have an option
 * that routes do not inherit, such as `limit` or `policies`.
 */
export function describesLimit(options: RateLimitOptions): boolean {
  return Object.keys(options).some((name) => !(DEFAULT_NAMES as readonly string[]).includes(name))
}

/**
 * Makes the plugin's options the defaults for the routes of the context `app` and of the contexts inside it. They take
 * precedence over the defaults from plugins around it (`outer`), which still apply to what the plugin leaves out. There
 * are two kinds of options: those of limiters, such as the store, and those about requests (`byRequests`), such as `key`.
 * If the plugin was given a finished limiter, the defaults of the first kind and the name come from that limiter, and only
 * those about requests come from plugins around it: routes then count in the limiter's store, and not in one from further
 * out.
 */
export function provideDefaults(app: AppContext, options: RateLimitOptions): void {
  const { [DEFAULTS]: outer = {} } = app
  const { limiter } = options
  const around = limiter ? { ...pick(outer, byRequests), ...limiter[SETTINGS], name: limiter.name } : outer
  app[DEFAULTS] = { ...around, ...pick(options, DEFAULT_NAMES) }
}

/** The options that routes of the context `app` inherit: one object for all of them. */
export function defaultsOf(app: AppContext): RateLimitOptions {
  return app[DEFAULTS]!
}

/** The name and the store of a route's limiter, where it has and inherits none: the same for all routes of one options object. */
export type Common = Required<Pick<RateLimitOptions, 'name' | 'store'>>

/**
 * The options of a route together with those that it inherits from the plugins around it (`outer`); its own take precedence. A
 * route with a limiter inherits only what concerns requests. Another counts in the plugin's store under the name of `common`,
 * as limiters of one name would share their usage there. If the plugin has no store, it counts in that of `common` under the
 * name 'default'.
 */
export function withDefaults(
  route: RateLimitOptions,
  outer: RateLimitOptions,
  common: Common,
): RateLimitOptions {
  if (route.limiter) return { ...pick(outer, byRequests), ...route }
  const { name: _name, ...defaults } = { store: common.store, ...outer }
  // Each of `limits` has a name of its own; in a store of the route, no other limiter counts.
  const name = route.limits || route.store ? undefined : outer.store ? common.name : 'default'
  return { ...defaults, ...(name && { name }), ...route }
}

/**
 * The name of a route's limiter: the plugin's name, the method and the path. It has to be the same in every process that
 * shares a store, so it is made of nothing else. A limiter's name has 1 to 64 characters of printable ASCII; where these
 * parts make none, the name is cut and ends with a digest, which keeps different routes apart.
 */
export function nameOf({ method, url = '' }: RouteLocation, plugin = ''): string {
  const name = [plugin, String(method), url].filter(Boolean).join(' ')
  if (/^[ -~]{1,64}$/.test(name)) return name
  return `${name.replace(/[^ -~]/g, '?').slice(0, 40)} ${digest(name).slice(0, 16)}`
}
