import { PolicyError } from '@sluice/core'

/*
 * First attempts that cannot work, although they look as if they did, or whose error would not say what to write. Each is refused
 * when the limit is made, with the line to write.
 */

/**
 * Refuses options (`given`) with a mistake that people make at first: a request in their place, as `rateLimit` itself was
 * passed as middleware and not called; a function as `limit`; a key function that was not called; `trustProxy`, for which the
 * error names the framework's own `setting`.
 * @throws {PolicyError} INVALID_OPTION with the line to write instead.
 */
export function refuseSlips(given: unknown, setting: string): void {
  const options = Object(given) as { readonly limit?: unknown; readonly key?: unknown }
  const { limit, key } = options
  if (REQUEST.some((name) => name in options)) throw uncalled()
  if (typeof limit === 'function') {
    const own = "const PAID = [slidingLog({ limit: 1000, window: '1m' })]"
    const policies = "policies: (req) => (req.headers['x-paid'] ? PAID : undefined)"
    throw slip(
      'limit is a number, policies may be a function',
      `${own}; rateLimit({ limit: 100, window: '1m', ${policies} })`,
    )
  }
  const call = (key as { readonly [CALL]?: string } | undefined)?.[CALL]
  if (call) throw slip('key was not called', `key: ${call}`)
  if ('trustProxy' in options) throw slip('proxies are trusted by a setting of the framework', setting)
}

/** Properties of requests, and of contexts of Koa and Hono, as far as they are their own. No option has one of these names. */
const REQUEST = ['url', 'req', 'raw', 'finalized']

/**
 * Makes a framework refuse `make`, such as `rateLimit`, where it is passed as middleware without a call, when the route
 * is set up. The framework reads `property` of each middleware that it is given, and a getter there throws. The getter is
 * not enumerable, so that tools which look at functions do not run into it.
 */
export function refuseUncalled(make: object, property: string): void {
  const get = (): never => {
    throw uncalled()
  }
  Object.defineProperty(make, property, { get, configurable: true })
}

/** The error where `rateLimit` itself is used as middleware, and not the middleware that it makes. */
function uncalled(): PolicyError {
  return slip('rateLimit was not called', "app.use(rateLimit({ limit: 100, window: '1m' }))")
}

/**
 * Marks a function that makes key functions, such as `byIp`, with `call`, the text of its usual call, and returns it. If
 * the function itself is then given as the option `key`, the error says to write that call.
 */
export function toBeCalled<F extends (...args: never) => unknown>(make: F, call: string): F {
  return Object.assign(make, { [CALL]: call })
}

const CALL = Symbol('call')

/** The error for a known mistake: what is wrong, and the line to write. */
function slip(what: string, line: string): PolicyError {
  return new PolicyError('INVALID_OPTION', `${what}. Write: ${line}`)
}
