import { PolicyError } from '@sluice/core'

/*
 * First attempts that cannot work, although they look as if they did, or whose error would not say what to write. Each is refused
 * when the limit is made, with the line to write.
 */

/**
 * Refuses known slips. `setting` is how the framework is told of its proxies.
 * @throws {PolicyError} INVALID_OPTION with the line to write in place of one.
 */
export function refuseSlips(given: unknown, setting: string): void {
  const options = Object(given) as { readonly limit?: unknown; readonly key?: unknown }
  const { limit, key } = options
  if (REQUEST.some((name) => name in options)) {
    throw slip(
      'rateLimit was given a request in place of options',
      "app.use(rateLimit({ limit: 100, window: '1m' }))",
    )
  }
  if (typeof limit === 'function') {
    const own = "const PAID = [slidingLog({ limit: 1000, window: '1m' })]"
    const policies = "policies: (req) => (req.headers['x-plan'] === 'paid' ? PAID : undefined)"
    throw slip(
      'limit is a number, and policies may be a function of the request',
      `${own}; rateLimit({ limit: 100, window: '1m', ${policies} })`,
    )
  }
  const call = (key as { readonly [CALL]?: string } | undefined)?.[CALL]
  if (call)
    throw slip(
      `key must be what ${call.replace(/\(.*/, '')} returns, got the function itself`,
      `key: ${call}`,
    )
  if ('trustProxy' in options) throw slip('proxies are trusted by a setting of the framework', setting)
}

/** Properties of requests, and of contexts of Koa and Hono, as far as they are their own. No option has one of these names. */
const REQUEST = ['url', 'req', 'raw', 'finalized']

/** Marks a function that makes key functions with its usual call, to be written in its place where it stands uncalled. */
export function toBeCalled<F extends (...args: never) => unknown>(make: F, call: string): F {
  return Object.assign(make, { [CALL]: call })
}

const CALL = Symbol('call')

function slip(what: string, line: string): PolicyError {
  return new PolicyError('INVALID_OPTION', `${what}. Write: ${line}`)
}
