import type { FastifyContextConfig, FastifyInstance } from 'fastify'
import type { RouteLocation } from './inherited.js'

/** A route, as Fastify keeps it: its context, and the configuration, with its method and url. */
interface Route {
  readonly server: FastifyInstance
  readonly config: FastifyContextConfig & RouteLocation
  readonly onRequest: readonly unknown[] | null
}

/**
 * Calls `visit` with each route that runs `hook`, a hook of `app`, in the order of their registration, before the first
 * request. Fastify has no list of routes. But it calls `hook.bind` for each route, in that order, and keeps the bound hook with
 * the route; and `printRoutes` calls the function `buildPrettyMeta` in its options with each route.
 */
export function forEachRoute(app: FastifyInstance, hook: object, visit: (route: Route) => void): void {
  const boundHooks: unknown[] = []
  /** Binds the hook for one route, as Fastify asks, and notes the bound hook. */
  const bind = (): unknown => {
    const bound: unknown = Function.prototype.bind.call(hook as () => void, undefined)
    boundHooks.push(bound)
    return bound
  }
  Object.defineProperty(hook, 'bind', { value: bind })
  app.addHook('onReady', function visitRoutes(done) {
    const routes: Route[] = []
    /** Notes a route that runs the hook, at the place of its bound hook. Returns no description. */
    const buildPrettyMeta = ({ store: route }: { readonly store: Route }): object => {
      const place = boundHooks.findIndex((bound) => route.onRequest?.includes(bound))
      if (place >= 0) routes[place] = route
      return {}
    }
    // A getter, because the router sets a function of its own.
    const property = { get: () => buildPrettyMeta, set: () => {} }
    app.printRoutes(Object.defineProperty({ includeMeta: true }, 'buildPrettyMeta', property))
    routes.forEach((route) => visit(route))
    done()
  })
}
