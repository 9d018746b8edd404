import type { FastifyContextConfig, FastifyInstance } from 'fastify'
import type { RouteLocation } from './inherited.js'

/** A route, as Fastify keeps it: its context, and the configuration, with its method and url. */
interface Route {
  readonly server: FastifyInstance
  readonly config: FastifyContextConfig & RouteLocation
  readonly onRequest: readonly unknown[] | null
}

/**
 * Calls `visit` with each route that runs the hook `hook` of `app`, in the order in which they were registered, before
 * the first request. Fastify has no list of routes. But `printRoutes` has each of them described by a function in its
 * options, and the hooks of each are bound in that order, by `bind` of the hook.
 */
export function forEachRoute(app: FastifyInstance, hook: object, visit: (route: Route) => void): void {
  const bound: unknown[] = []
  const bind = (): unknown =>
    bound[bound.push(Function.prototype.bind.call(hook as () => void, undefined)) - 1]
  Object.defineProperty(hook, 'bind', { value: bind })
  app.addHook('onReady', function visitRoutes(done) {
    const routes = new Map<number, Route>()
    const buildPrettyMeta = ({ store }: { readonly store: Route }): object => {
      const place = bound.findIndex((each) => store.onRequest?.includes(each))
      if (place >= 0) routes.set(place, store)
      return {}
    }
    // A getter, because the router puts a function of its own there.
    const described = { get: () => buildPrettyMeta, set: () => {} }
    app.printRoutes(Object.defineProperty({ includeMeta: true }, 'buildPrettyMeta', described))
    for (const place of [...routes.keys()].sort((one, other) => one - other)) visit(routes.get(place)!)
    done()
  })
}
