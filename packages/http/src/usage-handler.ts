import { limited, type LimitedOptions } from './limit-request.js'
import { USAGE } from './options.js'

/**
 * A handler that answers with the caller's own usage as JSON (@sluice/http/usage.schema.json), by the options of the limit that counts him: the
 * same key, policies and limiter, or the limiter's name and store. Nothing is charged, and the store is asked at most once a second a
 * key. A caller who is blocked is answered as the limit answers. `limit` is what takes these options: `rateLimit`, `rateLimitHook` of
 * Fastify, `RateLimit` of Nest, `limitNodeRequest`; without it the handler is of the Fetch standard, as those of Next.js are.
 * @throws {PolicyError} for options that cannot work; docs/errors.md has the codes.
 * @example
 * app.get('/usage', usageHandler({ limiter, key: byUser((req) => req.user?.id, 'api') }, rateLimit))
 */
export function usageHandler<Args extends unknown[] = []>(
  options: LimitedOptions<Args>,
): (request: Request, ...args: Args) => Promise<Response>
export function usageHandler<O extends object, H>(options: NoInfer<O>, limit: (options: O) => H): H
export function usageHandler(options: object, limit: (marked: never) => unknown = fetchHandler): unknown {
  return limit({ ...options, [USAGE]: true } as never)
}

/** The limit answers each request itself. */
const fetchHandler = (marked: LimitedOptions<unknown[]>) => limited(() => Response.error(), marked)
