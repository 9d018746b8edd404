import { digest, settingsOf } from '@sluice/core/http'
import type { FastifyInstance } from 'fastify'
import type { RateLimitOptions } from './index.js'

/*
 * What routes inherit of the plugin: whatever does not say how much. A route that says `{ limit, window }` and no more
 * counts where the plugin counts, by the plugin's key, and is answered as the plugin answers. A plugin that was given a
 * limiter counts where the limiter does.
 */

const OF_LIMITERS = ['store', 'onStoreError', 'deadline', 'leases', 'enforce'] as const
const OF_REQUESTS = ['key', 'skip', 'headers', 'resetAs', 'onDenied'] as const
const INHERITED = new Set<string>([...OF_LIMITERS, ...OF_REQUESTS, 'name'])

/** Where a route is. */
export interface Place {
  readonly method: string | readonly string[] | undefined
  readonly url: string | undefined
}

const DEFAULTS = Symbol('sluice.defaults')
type Context = FastifyInstance & { [DEFAULTS]?: RateLimitOptions }

/** Whether the plugin's options describe a limit, and not only what routes inherit. */
export function isLimit(options: RateLimitOptions): boolean {
  return Object.keys(options).some((name) => !INHERITED.has(name))
}

/** Lets the routes of a context, and of those inside of it, inherit what is in `options`. */
export function inheritFrom(app: Context, options: RateLimitOptions): void {
  const own = Object.entries(options).filter(([name]) => INHERITED.has(name))
  app[DEFAULTS] = { ...around(app, options), ...Object.fromEntries(own) }
}

/** A limiter says all of where it counts, so that nothing of it comes from the plugins outside. */
function around({ [DEFAULTS]: outer = {} }: Context, { limiter }: RateLimitOptions): RateLimitOptions {
  if (!limiter) return outer
  const ofRequests = OF_REQUESTS.filter((name) => name in outer).map((name) => [name, outer[name]])
  return { ...Object.fromEntries(ofRequests), ...settingsOf(limiter), name: limiter.name }
}

/** The options of a route with what it inherits. A limiter of its own has a store of its own. */
export function routeOptions(route: RateLimitOptions, app: Context, place: Place): RateLimitOptions {
  const defaults = app[DEFAULTS] ?? {}
  const names = route.limiter ? OF_REQUESTS : [...OF_LIMITERS, ...OF_REQUESTS]
  const inherited = Object.fromEntries(
    names.filter((name) => name in defaults).map((name) => [name, defaults[name]]),
  )
  const shares = !route.limiter && !route.name && !route.store && defaults.store
  const name = shares ? { name: nameOf(place, defaults.name) } : {}
  return { ...inherited, ...name, ...route }
}

/** In a shared store a limiter needs a name that is the same in every process: the plugin's, the method and the path. */
function nameOf({ method = 'GET', url = '' }: Place, plugin = ''): string {
  const name = [plugin, String(method), url].filter(Boolean).join(' ')
  if (/^[ -~]{1,64}$/.test(name)) return name
  return `${name.replace(/[^ -~]/g, '?').slice(0, 40)} ${digest(name).slice(0, 16)}`
}
