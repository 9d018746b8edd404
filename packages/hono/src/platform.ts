import { PolicyError } from '@sluice/core'
import type { Platform } from '@sluice/core/http'
import type { Context } from 'hono'
import type { StatusCode } from 'hono/utils/http-status'
import { bindingsOf, onSent, setHeader } from './pending.js'

export interface AddressOptions {
  /** The runtime's `getConnInfo`, which knows the other end of the connection. Needed to count by address. */
  readonly connInfo?: (c: Context) => { readonly remote: { readonly address?: string | undefined } }
  /**
   * How many proxies are in front, each of which appends to X-Forwarded-For whom it serves; default 0, and nothing in
   * that header is believed. Callers that can reach the application around the proxies choose their own address.
   */
  readonly trustProxy?: number
}

/** @throws {PolicyError} INVALID_OPTION for options that cannot work. */
export function platformFor(
  connInfo: AddressOptions['connInfo'],
  trustProxy = 0,
): Platform<Context, Context> {
  if (connInfo && typeof connInfo !== 'function')
    throw new PolicyError('INVALID_OPTION', 'connInfo must be a function: getConnInfo of the runtime')
  if (!(Number.isSafeInteger(trustProxy) && trustProxy >= 0))
    throw new PolicyError(
      'INVALID_OPTION',
      `trustProxy must be a number of proxies, got ${String(trustProxy)}`,
    )
  const socketAddress = (c: Context): string | undefined => connInfo?.(c).remote.address
  return {
    identity: (c) => c,
    address: (c) => (trustProxy > 0 && forwardedFor(c, trustProxy)) || socketAddress(c),
    socketAddress,
    hungUp: (c) => bindingsOf(c).incoming?.socket.destroyed ?? c.req.raw.signal.aborted,
    header: (c, name) => c.req.header(name),
    proxyTrust: () => (trustProxy > 0 ? 'some' : 'none'),
    headersSent: (c) => c.finalized,
    setHeader,
    setStatus: (c, status) => c.status(status as StatusCode),
    send: (_request, c, problem) => c.body(JSON.stringify(problem)),
    onFinished: (_request, c, listener) => onSent(c, listener),
    // What `compose` and `Hono` call handlers in.
    handlerFrame: /[ #]dispatch \(/,
  }
}

/** Whom the proxy farthest out has seen. What stands before that the caller may have made up. */
function forwardedFor(c: Context, proxies: number): string | undefined {
  const chain = c.req.header('x-forwarded-for')?.split(',') ?? []
  return chain.at(-Math.min(proxies, chain.length))?.trim()
}
