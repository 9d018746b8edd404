import type { Decision } from '@sluice/core'
import type { MaybePromise } from '@sluice/core/store'
import { isResponse, onAborted, responseOf, whenRead, withKept, withMissing } from './fetch-exchange.js'
import { behindProxies, PROXY_SETTING, type ProxyOptions } from './forwarded-for.js'
import { createGuard } from './create-guard.js'
import { keptHeadersOf } from './decisions.js'
import { NODE_SERVER } from './hung-up.js'
import type { RequestLimitOptions } from './options.js'
import type { Platform } from './platform.js'

/** The response to a request, as callbacks get it. `Response.json(body, response)` makes one of this status and headers. */
export type ResponseHead = Readonly<Pick<Response, 'status' | 'headers'>>

/** The options of every adapter, for requests of the Fetch standard. */
export interface LimitRequestOptions extends RequestLimitOptions<Request, ResponseHead>, ProxyOptions {
  /** Answers a denial in place of the problem details, for example by `Response.json(body, response)`. */
  readonly onDenied?: (request: Request, response: ResponseHead, decision: Decision) => MaybePromise<Response>
}

/**
 * The address at the other end of the connection; undefined or null where the platform knows none. Behind a proxy it is the
 * proxy's, and `trustProxy` says that X-Forwarded-For is to be read.
 */
type CallerAddress = string | null | undefined

/** A request that was counted. */
export interface LimitedCall {
  /** The response to a request that may not pass; undefined for others. */
  readonly denied?: Response | undefined
  /** The headers to add to the response of the handler. */
  readonly headers: Headers
  /** To be called when the response has been sent, for `shouldCharge` and `end`. Without a call the charge stays. */
  readonly finish: (response?: Pick<Response, 'status'>) => void
  /** Releases the permits of limits with a `semaphore`; to be called where there is no response to `finish` with. */
  readonly end: () => void
}

/** Options of requests that are not counted by their address. */
type OwnKey = Required<Pick<LimitRequestOptions, 'key'>>

/**
 * Makes the function that counts a request of the Fetch standard, for a framework without an adapter. It resolves to the
 * response to send if the request may not pass (`denied`; 499 if the caller has hung up), to the headers for the
 * handler's response, and to `finish`. The framework's code calls `finish` with that response once it has been sent: only
 * then is the option `shouldCharge` asked whether the charge stays. Without a call it stays. `end` is called in its place if
 * there is no response to send. The caller's address may be left out where the options have a `key`.
 * @throws {PolicyError} for options that cannot work; docs/errors.md has the codes.
 * @example
 * const limit = limitRequest({ limit: 100, window: '1m' })
 * const { denied, headers, finish } = await limit(request, { address: event.getClientAddress() })
 * if (denied) return denied
 */
export function limitRequest<O extends LimitRequestOptions>(options: O) {
  const { trustProxy, ...limit } = { ...(options as LimitRequestOptions) }
  const { header } = fetchPlatform
  const address = behindProxies(
    { header, socketAddress: (request: Request) => ADDRESSES.get(request) },
    trustProxy,
  )
  const guard = createGuard(limit, { ...fetchPlatform, address })
  return async function limitRequest(
    request: Request,
    ...[caller]: O extends OwnKey
      ? [{ readonly address?: CallerAddress }?]
      : [{ readonly address: CallerAddress }]
  ): Promise<LimitedCall> {
    ADDRESSES.set(request, caller?.address ?? undefined)
    const exchange: Exchange = { status: 200, headers: new Headers(), listeners: [], endings: [] }
    const { headers, listeners, endings } = exchange
    /**
     * Ends the exchange, and calls the listeners for a response that has been sent, unless the caller has hung up: by them
     * `shouldCharge` is asked, which sees the status. A second call finds no listeners.
     */
    const finish = ({ status }: Pick<Response, 'status'> = exchange): void => {
      exchange.status = status
      end()
      if (!request.signal.aborted) for (const listener of listeners.splice(0)) listener()
    }
    const end = (): void => endings.splice(0).forEach((ended) => ended())
    const denied = await guard(request, exchange)
    keptHeadersOf(request)?.forEach((value, name) => headers.set(name, value))
    if (!denied) return { headers, finish, end }
    const answer = denied.hungUp ? new Response(null, { status: 499 }) : responseOf(denied.answer, exchange)
    return { denied: withMissing(answer, headers), headers, finish, end }
  }
}

/** The options of `limited`. `address` gets what the platform passes to the handler. */
export type LimitedOptions<Args extends unknown[]> = LimitRequestOptions &
  (OwnKey | { readonly address: (request: Request, ...args: Args) => CallerAddress })

/**
 * A handler of the Fetch standard behind a limit, for `Bun.serve`, `Deno.serve`, Workers and routes of frameworks. The
 * limit's headers are added to the handler's response. Where a limit waits for the end of the response, for `shouldCharge` or to
 * release a permit, the body is passed through a stream that notices it. Errors are thrown.
 * @throws {PolicyError} for options that cannot work; docs/errors.md has the codes.
 * @example
 * Deno.serve(limited(handler, { limit: 100, window: '1m', address: (_request, info) => info.remoteAddr.hostname }))
 */
export function limited<Args extends unknown[], Known extends unknown[] = []>(
  handler: (request: Request, ...args: Args) => MaybePromise<Response>,
  options: LimitedOptions<Known>,
): (request: Request, ...args: Args extends [...Known, ...unknown[]] ? Args : Known) => Promise<Response> {
  const { address, ...limit } = { address: undefined, ...options }
  const limitCounted = limitRequest(limit)
  const waitsForEnd = limit.shouldCharge ?? limit.limits
  return async function limited(request, ...args) {
    const caller = { address: address?.(request, ...(args as unknown as Known)) }
    const { denied, finish, end } = await limitCounted(request, caller)
    if (denied) return denied
    let response: Response | undefined
    try {
      const own = await handler(request, ...(args as unknown as Args))
      // Bun has none where a request became a WebSocket.
      response = own && withKept(own, keptHeadersOf(request))
      if (!isResponse(response) || !waitsForEnd) return response
      return whenRead(request, response, (isSent) => (isSent ? finish(own) : end()))
    } finally {
      if (!isResponse(response)) end()
    }
  }
}

/** A response, as far as it is known, and what to call when it has been sent. */
type Exchange = {
  status: number
  readonly headers: Headers
  readonly listeners: (() => void)[]
  /** To be called when it has ended, sent or not. */
  readonly endings: (() => void)[]
}

/** By request, as callbacks get no more than that. */
const ADDRESSES = new WeakMap<Request, string | undefined>()

const fetchPlatform: Omit<Platform<Request, Exchange>, 'address'> = {
  identity: (request) => request,
  keepDecisions: () => 'beside',
  /**
   * The address that the platform gave, unless it stands in X-Forwarded-For. Then the platform reads that header itself, and
   * the warning about a connection from an untrusted proxy would be wrong.
   */
  socketAddress(request) {
    const address = ADDRESSES.get(request)
    return address && request.headers.get('x-forwarded-for')?.includes(address) ? undefined : address
  },
  hungUp: ({ signal }) => signal.aborted,
  method: ({ method }) => method,
  url: ({ url }) => url,
  header: ({ headers }, name) => headers.get(name) ?? undefined,
  headersSent: () => false,
  setHeader: ({ headers }, name, value) => headers.set(name, value),
  atHead: () => true,
  setStatus: (exchange, status) => void (exchange.status = status),
  send: (_request, exchange, _problem, text) => new Response(text, exchange),
  onFinished: (_request, { listeners }, listener) => void listeners.push(listener),
  onHungUp: (request, _exchange, listener) => onAborted(request, listener),
  /** Resolves when `finish` or `end` of the exchange is called, or the caller has hung up. */
  ended: (request, exchange) =>
    new Promise((resolve) => {
      exchange.endings.push(resolve)
      onAborted(request, resolve)
    }),
  proxySetting: PROXY_SETTING,
  handlerFrame: NODE_SERVER,
}
