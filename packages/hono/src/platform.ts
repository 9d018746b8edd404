import { PolicyError } from '@sluice/core'
import { type BunServer, hasHungUp, hasHungUpOnBun, type Platform } from '@sluice/http'
import type { Context } from 'hono'
import type { StatusCode } from 'hono/utils/http-status'
import { bindingsOf, onSent, setHeader } from './pending.js'

export interface AddressOptions {
  /** The runtime's `getConnInfo`, which returns the address of the connection. Required to count by address. */
  readonly connInfo?: (c: Context) => { readonly remote: { readonly address?: string | undefined } }
  /**
   * How many proxies are in front of the application. Each must append its client's address to X-Forwarded-For. With 0 that
   * header is ignored. Callers that can bypass the proxies choose their own address.
   * @default 0
   */
  readonly trustProxy?: number
}

/** @throws {PolicyError} INVALID_OPTION for options that cannot work. */
export function platformFor(options: AddressOptions & Record<string, unknown>): Platform<Context, Context> {
  const { connInfo, trustProxy = 0, key, allow, deny } = options
  if (!connInfo && (!key || Array.isArray(allow) || Array.isArray(deny)))
    throw invalid('connInfo is needed for addresses: Hono knows none of its own')
  if (connInfo && typeof connInfo !== 'function')
    throw invalid('connInfo must be a function: getConnInfo of the runtime')
  if (!(Number.isSafeInteger(trustProxy) && trustProxy >= 0))
    throw invalid(`trustProxy must be a number of proxies, got ${String(trustProxy)}`)
  const socketAddress = (c: Context): string | undefined => {
    try {
      return connInfo?.(c).remote.address
    } catch (error) {
      // The `getConnInfo` of a runtime expects its server, and `app.request` works without one.
      const { incoming, requestIP } = bindingsOf(c)
      if (incoming || requestIP) throw error
      return undefined
    }
  }
  return {
    identity: (c) => c,
    address: (c) => (trustProxy > 0 && forwardedFor(c, trustProxy)) || socketAddress(c),
    socketAddress,
    hungUp,
    header: (c, name) => c.req.header(name),
    rawHeaders: (c) => bindingsOf(c).incoming?.rawHeaders,
    proxyTrust: () => (trustProxy > 0 ? 'some' : 'none'),
    decided: (c, decision) => c.set('rateLimit', decision),
    headersSent: (c) => c.finalized,
    setHeader,
    setStatus: (c, status) => c.status(status as StatusCode),
    send: (_request, c, _problem, text) => c.body(text),
    onFinished: (_request, c, listener) => onSent(c, listener),
    // The frame in which `compose` and `Hono` call handlers.
    handlerFrame: /[ #]dispatch \(/,
  }
}

function hungUp(c: Context): boolean {
  const server = bindingsOf(c)
  if (server.incoming) return hasHungUp(server.incoming)
  return c.req.raw.signal.aborted || (isBun(server) && hasHungUpOnBun(c.req.raw, server))
}

function isBun(server: Partial<BunServer>): server is BunServer {
  return server.requestIP !== undefined
}

/** The address that the outermost proxy has seen. Entries before it may be forged by the caller. */
function forwardedFor(c: Context, proxies: number): string | undefined {
  const chain = c.req.header('x-forwarded-for')?.split(',') ?? []
  return chain.at(-Math.min(proxies, chain.length))?.trim()
}

const invalid = (what: string): PolicyError => new PolicyError('INVALID_OPTION', what)
