import { type Decision } from '@sluice/core'
import {
  createGuard,
  decisionAbout,
  type Denied,
  isResponse,
  PROXY_SETTING,
  refuseSlips,
  type RequestLimitOptions,
} from '@sluice/http'
import type { Context, Env, MiddlewareHandler, Next } from 'hono'
import { abandon, complete, type EndListeners, listenersOn } from './pending.js'
import { type AddressOptions, platformFor } from './platform.js'

export { byApiKey, byIp, type ByIpOptions, byUser, type KeyFunction } from '@sluice/http'
export { limitMessages, type Message, type MessageLimitOptions } from './messages.js'
export { apiKeyKey, ipKey, joinKey, userKey } from '@sluice/http'

/** With `rateLimit<Env>`, callbacks get a context of the application's own variables and bindings. */
// oxlint-disable-next-line typescript/no-explicit-any -- what Hono's own Context defaults to
export interface RateLimitOptions<E extends Env = any>
  extends RequestLimitOptions<Context<E>, Context<E>>, AddressOptions {}

/** The variables that the middleware sets on the context. */
export interface RateLimitVariables {
  /** The latest limiter's decision about the request; undefined if no limiter has counted it. */
  rateLimit: Decision | undefined
}

declare module 'hono' {
  interface ContextVariableMap extends RateLimitVariables {}
}

/**
 * Middleware that counts each request and answers those beyond the limit with 429. Errors are thrown, as Hono expects.
 * @throws {PolicyError} for options that cannot work; docs/errors.md has the codes.
 * @example
 * app.use(rateLimit({ limit: 100, window: '1m', connInfo: getConnInfo }))
 */
export function rateLimit(options: RateLimitOptions): MiddlewareHandler
export function rateLimit<E extends Env>(options: RateLimitOptions<E>): MiddlewareHandler<E>
/**
 * Makes the middleware. In Hono the context is both the request and the response, so the guard gets it twice. A request
 * that waits for nothing is passed on in the same tick.
 */
export function rateLimit(options: RateLimitOptions): MiddlewareHandler {
  const { connInfo, trustProxy, ...limit } = { ...options }
  refuseSlips(limit, PROXY_SETTING)
  const guard = createGuard(limit, platformFor({ connInfo, trustProxy }, limit))
  return function rateLimit(c, next) {
    const around = listenersOn(c)
    const outcome = guard(c, c)
    if (!outcome || 'answer' in outcome) return proceed(outcome, c, next, around)
    return outcome.then((denied) => proceed(denied, c, next, around))
  }
}

/**
 * Goes on after the limit: runs the handlers if the request may pass, otherwise responds with the answer to the denied request,
 * which `onDenied` or the platform returned. In both cases `complete` adds the limit's headers to the response at last. If
 * the handlers fail, `abandon` ends the call. `around`: the listeners that limiters around this one have left on the context.
 */
function proceed(denied: Denied | undefined, c: Context, next: Next, around: EndListeners): Promise<void> {
  if (!denied) {
    const fail = (error: unknown): never => {
      abandon(c, around)
      throw error
    }
    return next().then(() => complete(c, around), fail)
  }
  if (!c.finalized) c.res = responseOf(denied.answer, c)
  complete(c, around)
  return Promise.resolve()
}

/** The response to a denied request: the `answer` of `onDenied` itself, or one with that as its body, an object as JSON. */
function responseOf(answer: unknown, c: Context): Response {
  if (typeof answer !== 'object' || answer === null) return c.body((answer ?? null) as string)
  return isResponse(answer) ? answer : c.json(answer as {})
}

/**
 * The decision about a request, for example to settle it: the latest one, or that of the limiter with the given name.
 * undefined if no such limiter has counted the request.
 */
export const decisionOf: (c: Context, limiter?: string) => Decision | undefined = decisionAbout
