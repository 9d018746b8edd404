import { createLimiter, type Duration, slidingWindow } from '@sluice/core'
import { rateLimit } from '@sluice/hono'
import { Hono } from 'hono'
import { getConnInfo } from 'hono/cloudflare-workers'
import { type Context, LimitObject, type Objects, objectStore } from './durable-objects.js'

/*
 * Limits on Cloudflare Workers, and wherever else instances come and go and share no memory.
 *
 * What cannot be held without shared state: a memory store counts in each isolate for itself. There are many, in each city, and
 * they end at any time, so `limit` then bounds what one isolate lets through, and nothing more. It is good against a burst.
 * A connection to Redis cannot be used either: a Worker may not use a socket that another request opened. On platforms that run
 * Node (Lambda, Cloud Run, Vercel), use `redisStore(url)` as on a server.
 *
 * A decision takes one round trip, as with Redis, as far as the object of the key is away.
 */

const limits = { api: [slidingWindow({ limit: 100, window: '1m' })] }

/** The class of the objects, which the configuration of the Worker names. */
export class LimitState extends LimitObject {
  constructor(ctx: Context) {
    super(ctx, limits)
  }
}

/** The application, for the bindings of a Worker: `export default { fetch: (request, env) => edgeApp(env.LIMITS).fetch(request) }` */
export function edgeApp(objects: Objects, deadline: Duration = '500ms'): Hono {
  const limiter = createLimiter({
    name: 'api',
    policies: limits.api,
    store: objectStore(objects),
    deadline, // the object may be on another continent
    onStoreError: 'allow', // what an isolate counts for itself says little
  })
  // Reads CF-Connecting-IP, which the platform sets and callers cannot.
  return new Hono().use(rateLimit({ limiter, connInfo: getConnInfo })).get('/', (c) => c.text('hello'))
}
