import type { IncomingMessage, ServerResponse } from 'node:http'
import { behindProxies, type ProxyOptions } from './forwarded-for.js'
import { createGuard } from './create-guard.js'
import { nodePlatform } from './node-platform.js'
import type { RequestLimitOptions } from './options.js'

/** The options of every adapter, for requests of Node's own servers. */
export type LimitNodeOptions = RequestLimitOptions<IncomingMessage, ServerResponse> & ProxyOptions

/**
 * Makes the function that counts a request of Node's servers, HTTP/1 and HTTP/2, for a framework without an adapter. It
 * resolves to false if the request may not pass, and has been answered. Errors are thrown, with nothing charged.
 * @throws {PolicyError} for options that cannot work; docs/errors.md has the codes.
 * @example
 * const mayPass = limitNodeRequest({ limit: 100, window: '1m' })
 * createServer(async (req, res) => (await mayPass(req, res)) && res.end('hello'))
 */
export function limitNodeRequest(options: LimitNodeOptions) {
  const guard = guardOf(options)
  return async (req: IncomingMessage, res: ServerResponse) => (await guard(req, res)) === undefined
}

/** A listener of Node's servers, sync or async. */
type NodeListener = (req: IncomingMessage, res: ServerResponse) => unknown

/**
 * A listener of Node's servers behind a limit. A request that cannot be counted, as a callback or the store throws, is
 * answered 500 and reported as the warning REQUEST_FAILED.
 * @throws {PolicyError} for options that cannot work; docs/errors.md has the codes.
 * @example
 * createServer(limitedListener((req, res) => res.end('hello'), { limit: 100, window: '1m' })).listen(3000)
 */
export function limitedListener(listener: NodeListener, options: LimitNodeOptions): NodeListener {
  const guard = guardOf(options)
  return async function limitedListener(req, res) {
    let denied
    try {
      denied = await guard(req, res)
    } catch (error) {
      guard.limiter.warn('REQUEST_FAILED', `a request was not counted and answered 500: ${String(error)}`)
      res.statusCode = 500
      return res.end()
    }
    return denied ? undefined : listener(req, res)
  }
}

/**
 * The guard of these options on Node's requests and responses. `trustProxy` is no option of guards: it makes the platform
 * read the caller's address from X-Forwarded-For.
 */
function guardOf(options: LimitNodeOptions) {
  const { trustProxy, ...limit } = { ...options }
  return createGuard(limit, { ...nodePlatform, address: behindProxies(nodePlatform, trustProxy) })
}
