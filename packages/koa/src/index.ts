import type { Decision } from '@sluice/core'
import {
  createGuard,
  decisionAbout,
  type Denied,
  type GuardOptions,
  onResponseSent,
  type Platform,
} from '@sluice/core/http'
import type {
  Context,
  DefaultContext,
  DefaultState,
  Middleware,
  Next,
  ParameterizedContext,
  Response,
} from 'koa'

export { byApiKey, byIp, type ByIpOptions, byUser, type KeyFunction } from '@sluice/core/http'
export { apiKeyKey, ipKey, joinKey, userKey } from '@sluice/core/http'

/** Callbacks get a context of the application's own state and context, where `rateLimit` is given their types. */
export type RateLimitOptions<StateT = DefaultState, ContextT = DefaultContext> = GuardOptions<
  ParameterizedContext<StateT, ContextT>,
  Response
>

/** What the middleware adds to `ctx.state`. */
export interface RateLimitState {
  /** What the latest limiter decided about the request; undefined where none has counted it. */
  rateLimit?: Decision
}

/**
 * Middleware that counts each request and answers 429 to those beyond the limit. Requests pass on in the same tick
 * when the store is memory and no callback is async; errors are thrown, as Koa expects it.
 * @throws {PolicyError} when an option cannot work; see docs/errors.md for the codes.
 */
export function rateLimit(options: RateLimitOptions): Middleware<RateLimitState>
export function rateLimit<StateT, ContextT = {}>(
  options: RateLimitOptions<StateT, ContextT>,
): Middleware<StateT & RateLimitState, ContextT>
export function rateLimit(options: RateLimitOptions): Middleware<RateLimitState> {
  const guard = createGuard(options, koa)
  return function rateLimit(ctx: Context, next: Next): Promise<void> | void {
    const proceed = (denied: Denied | undefined): Promise<void> | void => {
      const decision = decisionOf(ctx)
      if (decision) (ctx.state as RateLimitState).rateLimit = decision
      return denied ? undefined : next().catch((error: unknown) => rethrow(error, ctx.response))
    }
    let denied
    try {
      denied = guard(ctx, ctx.response)
    } catch (error) {
      rethrow(error, ctx.response)
    }
    return denied instanceof Promise
      ? denied.then(proceed, (error: unknown) => rethrow(error, ctx.response))
      : proceed(denied)
  }
}

/**
 * The decision about a request, for example to settle it: the latest, or that of the limiter of the given name.
 * Undefined where none has counted the request.
 */
export function decisionOf(ctx: ParameterizedContext, limiter?: string): Decision | undefined {
  return decisionAbout(ctx, limiter)
}

const koa: Platform<Context, Response> = {
  identity: (ctx) => ctx,
  address: (ctx) => ctx.ip,
  socketAddress: (ctx) => ctx.socket.remoteAddress,
  hungUp: ({ socket }) => socket.destroyed,
  header: (ctx, name) => ctx.get(name) || undefined,
  proxyTrust({ app }) {
    // Without a count Koa believes the first address of the header, which is the one that the caller wrote.
    return !app.proxy ? 'none' : app.maxIpsCount > 0 ? 'some' : 'all'
  },
  headersSent: (res) => res.headerSent,
  setHeader(res, name, value) {
    res.set(name, value)
    headersOf(res)[name] = value
  },
  setStatus: (res, status) => void (res.status = status),
  send: (_ctx, res, problem) => (res.body = JSON.stringify(problem)),
  onFinished: ({ req, res }, _response, listener) => onResponseSent(req, res, listener),
  handlerFrame: /\bkoa-compose\b|\bApplication\.handleRequest\b/,
}

const HEADERS = Symbol('headers of the limiters')

/** The headers that were set on a response here. */
function headersOf(res: Response & { [HEADERS]?: Record<string, string> }): Record<string, string> {
  return (res[HEADERS] ??= {})
}

/** Koa answers an error, also `ctx.throw(404)`, with the headers that the error brings along and with no others. */
function rethrow(error: unknown, res: Response): never {
  if (error instanceof Error) {
    const { headers } = error as { headers?: Record<string, string> }
    Object.assign(error, { headers: { ...headers, ...headersOf(res) } })
  }
  throw error
}
