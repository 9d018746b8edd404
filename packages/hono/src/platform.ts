import { PolicyError } from '@sluice/core'
import { type DeclarationOf, func, readOptions, unchecked } from '@sluice/core/internal'
import {
  behindProxies,
  hasHungUp,
  lowerCase,
  type Platform,
  PROXY_SETTING,
  type ProxyOptions,
  remembering,
} from '@sluice/http'
import type { Context } from 'hono'
import type { StatusCode } from 'hono/utils/http-status'
import { atHead, bindingsOf, ended, onGone, onSent } from './pending.js'

export interface AddressOptions extends ProxyOptions {
  /** The runtime's `getConnInfo`, which returns the address of the connection. Required to count by address. */
  readonly connInfo?: (c: Context) => { readonly remote: { readonly address?: string | undefined } }
}

const ADDRESS = {
  connInfo: func<NonNullable<AddressOptions['connInfo']>>(),
  trustProxy: unchecked(),
} satisfies DeclarationOf<AddressOptions>

/**
 * The platform of an application: how the guard reads its requests and answers them. `address` has the options
 * `connInfo`, the runtime's function for the address of a connection, and `trustProxy`. The limit's own options (`key`
 * and the rest) show whether addresses are needed at all.
 * @throws {PolicyError} INVALID_OPTION where they are needed and `connInfo` is missing.
 */
export function platformFor(
  address: Partial<Record<keyof AddressOptions, unknown>>,
  { key, allow, deny, limits }: Partial<Record<'key' | 'allow' | 'deny' | 'limits', unknown>>,
): Platform<Context, Context> {
  const { connInfo, trustProxy } = readOptions(ADDRESS, address, { what: 'rateLimit' })
  const hasKeys = key || (Array.isArray(limits) && limits.every((part) => part?.key))
  if (!connInfo && (!hasKeys || Array.isArray(allow) || Array.isArray(deny))) {
    const why = 'connInfo is needed for addresses'
    throw new PolicyError('INVALID_OPTION', why)
  }
  /**
   * The address at the other end of the connection. undefined where `connInfo` throws because a test runs the application
   * without a server; behind a server its error is thrown on.
   */
  const socketAddress = (c: Context): string | undefined => {
    try {
      return connInfo?.(c).remote.address
    } catch (error) {
      // The `getConnInfo` of a runtime expects its server, and `app.request` works without one.
      const server = bindingsOf(c)
      if (server.incoming || server.requestIP) throw error
      return undefined
    }
  }
  const header = (c: Context, name: string): string | undefined => c.req.header(name)
  return {
    identity: (c) => c,
    address: behindProxies({ header, socketAddress }, trustProxy),
    socketAddress,
    hungUp,
    method: (c) => c.req.method,
    url: (c) => c.req.url,
    header,
    rawHeaders: (c) => bindingsOf(c).incoming?.rawHeaders,
    decided: (c, decision) => c.set('rateLimit', decision),
    headersSent: (c) => c.finalized,
    // In lower case, as `Headers` keep names.
    setHeader: remembering((c: Context, name, value) => c.header(lowerCase(name), value)),
    atHead,
    setStatus: (c, status) => c.status(status as StatusCode),
    send: (_request, c, _problem, text) => c.body(text),
    onFinished: (_request, c, listener) => onSent(c, listener),
    onHungUp: (_request, c, listener) => onGone(c, listener),
    ended: (_request, c) => ended(c),
    proxySetting: PROXY_SETTING,
    // The frame in which `compose` and `Hono` call handlers.
    handlerFrame: /[ #]dispatch \(/,
  }
}

/**
 * Whether the caller of a request without an address has hung up. On Node the socket says so. Elsewhere the request's
 * signal is aborted or, on Bun, the server does not know the caller's address any more although it listens on a port.
 */
function hungUp(c: Context): boolean {
  const server = bindingsOf(c)
  if (server.incoming) return hasHungUp(server.incoming)
  const { raw } = c.req
  // On a Unix socket Bun knows no address of any caller, so that proves nothing; such a server has no port.
  return raw.signal.aborted || (server.port !== undefined && server.requestIP?.(raw) === null)
}
