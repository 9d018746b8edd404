import { PolicyError } from '@sluice/core'

/*
 * First attempts that cannot work, although they look as if they did, or whose error would not say what to write. Each is refused
 * when the limit is made, with the line to write.
 */

/**
 * Looks for mistakes that people make at first in the options `given`, such as a request in their place, when `rateLimit`
 * itself was passed as middleware and not called. `setting` is the framework's setting for its proxies, which the error
 * for `trustProxy` names.
 * @throws {PolicyError} INVALID_OPTION with the line to write in place of one.
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
  // The getter throws because a framework that reads it was given `make` itself, such as `rateLimit`, as middleware. It should
  // have been given the middleware that a call of `make` returns, and the error says to write that call.
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
