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
  const header = proxyHeader(req, reader)
  if (header === FORWARDED) return 'FORWARDED_IGNORED'
  return header && trust === 'none' ? 'FORWARDED_NOT_TRUSTED' : undefined
}

const X_FORWARDED_FOR = 'x-forwarded-for'
const FORWARDED = 'forwarded'

type ProxyHeader = typeof X_FORWARDED_FOR | typeof FORWARDED

/** The header by which a proxy names its client: X-Forwarded-For, else Forwarded, if the request has one of them. */
function proxyHeader<Req>(req: Req, reader: RequestReader<Req>): ProxyHeader | undefined {
  const raw = reader.rawHeaders?.(req)
  if (raw) return rawProxyHeader(raw)
  if (reader.header(req, X_FORWARDED_FOR) !== undefined) return X_FORWARDED_FOR
  return reader.header(req, FORWARDED) === undefined ? undefined : FORWARDED
}

/** In one pass over names and values. Few names have one of the two lengths, and only these are compared. */
function rawProxyHeader(rawHeaders: readonly string[]): ProxyHeader | undefined {
  let found: ProxyHeader | undefined
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!
    if (name.length === X_FORWARDED_FOR.length && name.toLowerCase() === X_FORWARDED_FOR)
      return X_FORWARDED_FOR
    if (name.length === FORWARDED.length && name.toLowerCase() === FORWARDED) found = FORWARDED
  }
  return found
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
