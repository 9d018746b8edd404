import type { Decision } from '@sluice/core'
import {
  createGuard,
  decisionAbout,
  type Denied,
  type RequestLimitOptions,
  hasHungUp,
  onConnectionLost,
  onResponseSent,
  responseEnded,
  overseeHead,
  type Platform,
  refuseUncalled,
  rememberedHeaders,
  remembering,
} from '@sluice/http'
import type {
  Context,
  DefaultContext,
  DefaultState,
  Middleware,
  Next,
  ParameterizedContext,
  Response,
} from 'koa'

export { byApiKey, byIp, type ByIpOptions, byUser, type KeyFunction } from '@sluice/http'
export { apiKeyKey, ipKey, joinKey, userKey } from '@sluice/http'

/** With `rateLimit<State, Context>`, callbacks get a context of the application's own types. */
export type RateLimitOptions<StateT = DefaultState, ContextT = DefaultContext> = RequestLimitOptions<
  ParameterizedContext<StateT, ContextT>,
  Response
>

/** The part of `ctx.state` that the middleware adds. */
export interface RateLimitState {
  /** The latest limiter's decision about the request; undefined if no limiter has counted it. */
  rateLimit?: Decision
}

/**
 * Middleware that counts each request and answers those beyond the limit with 429. With a memory store and no async
 * callback, a request passes on in the same tick. Errors are thrown, as Koa expects.
 * @throws {PolicyError} for options that cannot work; docs/errors.md has the codes.
 * @example
 * app.use(rateLimit({ limit: 100, window: '1m' }))
 */
export function rateLimit(options: RateLimitOptions): Middleware<RateLimitState>
export function rateLimit<StateT, ContextT = {}>(
  options: RateLimitOptions<StateT, ContextT>,
): Middleware<StateT & RateLimitState, ContextT>
/** Makes the middleware. Errors of the guard go through `rethrow`: if `onDenied` fails, Koa's answer has the denial's headers. */
export function rateLimit(options: RateLimitOptions): Middleware<RateLimitState> {
  const guard = createGuard(options, koa)
  return function rateLimit(ctx: Context, next: Next): Promise<void> | void {
    const fail = (error: unknown): never => rethrow(error, ctx.response)
    let outcome // undefined if the request may pass; a denied one has been answered already
    try {
      outcome = guard(ctx, ctx.response)
    } catch (error) {
      return fail(error)
    }
    if (outcome === undefined) return next()
    if ('answer' in outcome) return undefined
    const proceed = (denied: Denied | undefined): Promise<void> | void => (denied ? undefined : next())
    return outcome.then(proceed).then(undefined, fail)
  }
}

// `app.use` reads it for its debug log.
refuseUncalled(rateLimit, '_name')

/**
 * The decision about a request, for example to settle it: the latest one, or that of the limiter with the given name.
 * undefined if no such limiter has counted the request.
 */
export const decisionOf: (ctx: ParameterizedContext, limiter?: string) => Decision | undefined = decisionAbout

const koa: Platform<Context, Response> = {
  identity: (ctx) => ctx,
  address: (ctx) => ctx.ip,
  socketAddress: (ctx) => ctx.socket.remoteAddress,
  hungUp: ({ req }) => hasHungUp(req),
  method: (ctx) => ctx.method,
  url: (ctx) => ctx.originalUrl,
  header: (ctx, name) => ctx.get(name) || undefined,
  rawHeaders: ({ req }) => req.rawHeaders,
  // Without `maxIpsCount`, Koa takes the first address of the header, which the caller wrote.
  trustsAll: ({ app }) => app.proxy && !(app.maxIpsCount > 0),
  decided: (ctx, decision) => void ((ctx.state as RateLimitState).rateLimit = decision),
  headersSent: (res) => res.headerSent,
  setHeader: remembering(({ res }, name, value) => void res.setHeader(name, value)),
  atHead: ({ res }, kept) => overseeHead(res, kept),
  /** Sets the status of the answer to a denied request, and drops a body that was set before the limiter. */
  setStatus(res, status) {
    // Koa makes a body of JSON null unless its type is gone.
    if (res.body !== undefined) {
      res.remove('Content-Type')
      res.body = undefined
    }
    res.status = status
  },
  send: (_ctx, res, _problem, text) => (res.body = text),
  // Koa answers 204 where a body is null.
  sendResult: (res, body) => void (res.body ??= body ?? ''),
  onFinished: ({ req, res }, _response, listener) => onResponseSent(req, res, listener),
  onHungUp: ({ res }, _response, listener) => onConnectionLost(res, listener),
  ended: ({ res }) => responseEnded(res),
  proxySetting: 'new Koa({ proxy: true, maxIpsCount: 1 })',
  handlerFrame: /\bkoa-compose\b|\bApplication\.handleRequest\b/,
}

/**
 * Throws `error` again, with the headers that a denial has set on the response copied into it, as Koa answers an error with
 * only the headers that the error itself has. For a request that passed, limits have set none yet: the head of Koa's answer
 * gets them.
 */
function rethrow(error: unknown, res: Response): never {
  if (error instanceof Error && rememberedHeaders(res)) addHeaders(error, res)
  throw error
}

/**
 * Adds the headers that the limits have set on the response to the error's own `headers`, from which Koa answers. The
 * list of remembered headers has the latest first, so of a header that was set twice the latest value stays.
 */
function addHeaders(error: Error & { headers?: unknown }, res: Response): void {
  const added: Record<string, string> = {}
  for (let header = rememberedHeaders(res); header; header = header.earlier)
    added[header.name] ??= header.value
  try {
    const headers = error.headers ?? {}
    // Other headers, such as the `Headers` of a response, are for the code that catches the error.
    if (isPlainObject(headers)) error.headers = { ...headers, ...added }
  } catch {
    // The error is frozen, or its class has a getter. It is answered without the limits.
  }
}

/**
 * Whether an object is a plain one, such as `{}`, and not an instance of a class. A spread copies the own properties of an
 * object, which is all of a plain one, but not what a class such as `Headers` keeps elsewhere. A plain object is recognised
 * by having no prototype, or one that has none itself. That also holds for a plain object of another realm (such as a
 * context of `node:vm`), whose prototype is not the `Object.prototype` of this one.
 */
function isPlainObject(value: object): boolean {
  const prototype = Object.getPrototypeOf(value)
  return prototype === null || Object.getPrototypeOf(prototype) === null
}
