import type { RequestReader } from './platform.js'
import type { SetupWarning } from './setup-warnings.js'

/*
 * Which proxies a framework trusts to set X-Forwarded-For. Each function is used by the framework's own adapter and by that
 * of Nest, which runs on either.
 */

/** Detects proxy settings under which an address does not identify a caller. */
export function proxyWarning<Req>(req: Req, reader: RequestReader<Req>): SetupWarning | undefined {
  const trust = reader.proxyTrust(req)
  if (trust === 'all') return 'TRUST_PROXY_PERMISSIVE'
  if (hasHeader(req, reader, 'x-forwarded-for')) return trust === 'none' ? 'FORWARDED_NOT_TRUSTED' : undefined
  return hasHeader(req, reader, 'forwarded') ? 'FORWARDED_IGNORED' : undefined
}

function hasHeader<Req>(req: Req, reader: RequestReader<Req>, name: string): boolean {
  return reader.hasHeader ? reader.hasHeader(req, name) : reader.header(req, name) !== undefined
}

/** Reads the setting 'trust proxy' of an Express application. */
export function expressTrust(app: ExpressAppLike | undefined): ProxyTrust {
  // Applications inherit the settings of those they are mounted on through the prototype. `app.get` searches for them.
  const setting = app?.settings?.['trust proxy']
  return setting === true ? 'all' : setting ? 'some' : 'none'
}

/** Infers the setting `trustProxy` from a Fastify request, because the setting itself cannot be read. */
export function fastifyTrust(request: FastifyRequestLike): ProxyTrust {
  if (request.ips === undefined) return 'none'
  if (trustsStrangers(request)) return 'all'
  // A single entry is the socket's own, which is not trusted. With a number for `trustProxy`, there is never another one.
  return request.ips.length > 1 ? 'some' : 'none'
}

/**
 * Whether Fastify trusts every proxy. Tested once per server with a made-up request from an unknown address through 30
 * unknown proxies, more than a real chain ever has.
 */
function trustsStrangers({ server, constructor }: FastifyRequestLike): boolean {
  if (!TRUSTS.has(server)) {
    const raw = {
      socket: { remoteAddress: STRANGER },
      headers: { 'x-forwarded-for': Array(30).fill(STRANGER).join() },
    }
    const ips = Reflect.get(constructor.prototype as object, 'ips', { raw }) as string[]
    TRUSTS.set(server, ips.length > 30)
  }
  return TRUSTS.get(server)!
}

const STRANGER = '203.0.113.254'
const TRUSTS = new WeakMap<object, boolean>()

type ProxyTrust = ReturnType<RequestReader<unknown>['proxyTrust']>

interface ExpressAppLike {
  readonly settings?: Readonly<Record<string, unknown>>
}

interface FastifyRequestLike {
  readonly server: object
  /** The addresses from the socket outwards, as far as they are trusted; undefined if no proxy is. */
  readonly ips?: readonly string[] | undefined
}

/**
 * Whether Node's list of names and values as they were received holds a header; `name` is in lower case. Unlike `headers`,
 * the list is there without being parsed.
 */
export function hasRawHeader(rawHeaders: readonly string[], name: string): boolean {
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const received = rawHeaders[i]!
    if (received.length === name.length && received.toLowerCase() === name) return true
  }
  return false
}
