import { digest, LIMITER } from '@sluice/core/internal'
import { HEADERS, settingsOf } from '@sluice/http'
import type { FastifyInstance } from 'fastify'
import type { RateLimitOptions } from './hook.js'

/*
 * Routes inherit every option of the plugin that is not part of the limit itself. A route with only `{ limit, window }`
 * thus counts in the plugin's store, by the plugin's key, and denies as the plugin does. If the plugin was given a limiter,
 * the options of limiters come from that one.
 */

const { name: _name, policies: _policies, penalty: _penalty, ...limiters } = LIMITER
const OF_LIMITERS = Object.keys(limiters) as (keyof typeof limiters)[]
const OF_HEADERS = Object.keys(HEADERS) as (keyof typeof HEADERS)[]
const OF_REQUESTS = ['key', 'skip', 'allow', 'deny', ...OF_HEADERS, 'onDenied', 'onExceeded'] as const
const INHERITED = new Set<string>([...OF_LIMITERS, ...OF_REQUESTS, 'name'])

export interface RouteLocation {
  readonly method: string | readonly string[] | undefined
  readonly url: string | undefined
}

const DEFAULTS = Symbol('sluice.defaults')
type AppContext = FastifyInstance & { [DEFAULTS]?: RateLimitOptions }

/** Whether the plugin's options describe a limit, and not only defaults for routes. */
export function describesLimit(options: RateLimitOptions): boolean {
  return Object.keys(options).some((name) => !INHERITED.has(name))
}

/** Makes `options` the defaults for the routes of a context and of the contexts inside it. */
export function provideDefaults(app: AppContext, options: RateLimitOptions): void {
  const own = Object.entries(options).filter(([name]) => INHERITED.has(name))
  app[DEFAULTS] = { ...outerDefaults(app, options), ...Object.fromEntries(own) }
}

/** A plugin with a limiter takes the options of limiters from that one, and none of them from plugins around it. */
function outerDefaults({ [DEFAULTS]: outer = {} }: AppContext, options: RateLimitOptions): RateLimitOptions {
  const { limiter } = options
  if (!limiter) return outer
  const ofRequests = OF_REQUESTS.filter((name) => name in outer).map((name) => [name, outer[name]])
  return { ...Object.fromEntries(ofRequests), ...settingsOf(limiter), name: limiter.name }
}

/** The options of a route together with those that it inherits. A route's own limiter keeps its own store. */
export function withDefaults(route: RateLimitOptions, app: AppContext, at: RouteLocation): RateLimitOptions {
  const defaults = app[DEFAULTS] ?? {}
  const names = route.limiter ? OF_REQUESTS : [...OF_LIMITERS, ...OF_REQUESTS]
  const inherited = Object.fromEntries(
    names.filter((name) => name in defaults).map((name) => [name, defaults[name]]),
  )
  const sharesStore = !route.limiter && !route.name && !route.store && defaults.store
  const name = sharesStore ? { name: nameOf(at, defaults.name) } : {}
  return { ...inherited, ...name, ...route }
}

/** In a shared store a limiter must have the same name in every process: the plugin's, the method and the path. */
function nameOf({ method = 'GET', url = '' }: RouteLocation, plugin = ''): string {
  const name = [plugin, String(method), url].filter(Boolean).join(' ')
  if (/^[ -~]{1,64}$/.test(name)) return name
  return `${name.replace(/[^ -~]/g, '?').slice(0, 40)} ${digest(name).slice(0, 16)}`
}
