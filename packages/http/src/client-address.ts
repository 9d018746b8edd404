import { inCommon, ownText } from '@sluice/core/internal'
import ipaddr from 'ipaddr.js'
import { getOrMake } from './get-or-make.js'
import type { RequestReader } from './platform.js'
import type { SetupWarning } from './setup-warnings.js'

/*
 * One caller must have one name, however its address is written; otherwise it has one allowance per spelling. Two callers
 * must not share a name; otherwise one of them consumes the other's allowance.
 */

/** The smallest network that a provider gives to a customer. All addresses in it count as one caller. */
export const IPV6_PREFIX = 64

/**
 * The canonical name of the caller at an address as a socket or a proxy header gives it: the IPv4 address, or the IPv6
 * network of `ipv6Prefix` bits (32 to 128; default 64) that contains it, such as `2001:db8::/64`. An address in
 * 64:ff9b:1::/48 (local NAT64) names a caller by itself. Ports, brackets and zones are dropped. undefined if the text is not
 * an address.
 */
export function clientAddress(text: string | undefined, ipv6Prefix = IPV6_PREFIX): string | undefined {
  if (text === undefined) return undefined
  if (IPV4.test(text)) return text
  // A dual-stack server sees every IPv4 caller in this form. Masked as IPv6, all of them would be in one network, ::/64.
  if (text.startsWith('::ffff:') && IPV4.test(text.slice(7))) return text.slice(7)
  const bare = withoutPort(text)
  if (IPV4.test(bare)) return bare
  const groups = ipv6Groups(bare)
  return groups && (ipv4Inside(groups) ?? networkOf(groups, isLocalNat64(groups) ? 128 : ipv6Prefix))
}

/** Four decimal numbers. `010.0.0.1` is 10.0.0.1 to some parsers and 8.0.0.1 to others, so it is not accepted. */
const OCTET = '(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)'
const IPV4 = new RegExp(`^${OCTET}(?:\\.${OCTET}){3}$`)

/**
 * The address without its port. Some proxies forward the port, which changes with each connection, so each connection
 * would count as a new caller.
 */
function withoutPort(text: string): string {
  const match = /^\[([^\]]+)\](?::\d{1,5})?$/.exec(text) ?? /^([\d.]+):\d{1,5}$/.exec(text)
  return match ? match[1]! : text
}

/**
 * The eight groups of an IPv6 address, or undefined if the text is none. The zone is dropped, as it names an interface
 * of the receiver.
 */
function ipv6Groups(text: string): readonly number[] | undefined {
  const [address = '', zone] = text.split('%', 2)
  if (zone === '') return undefined
  const tailAt = address.lastIndexOf(':') + 1
  const tail = address.slice(tailAt)
  const hasIpv4Tail = tail.includes('.')
  if (hasIpv4Tail && !IPV4.test(tail)) return undefined
  try {
    // ipaddr.js accepts octal and hexadecimal numbers in an IPv4 tail, and takes ::10.0.0.1, but not ::a00:1, for 10.0.0.1.
    return ipaddr.IPv6.parse(hasIpv4Tail ? address.slice(0, tailAt) + hexGroups(tail) : address).parts
  } catch {
    return undefined
  }
}

/**
 * The IPv4 address that an IPv6 address stands for, or undefined. With NAT64 (RFC 6052) all IPv4 callers would share
 * one /64. With 6to4 (RFC 3056) every IPv4 address owns 65,536 networks of /64.
 */
function ipv4Inside(groups: readonly number[]): string | undefined {
  const [a, b, c, d, e, f, g, h] = groups as [number, number, number, number, number, number, number, number]
  if (a === 0x2002) return ipv4Text(b, c)
  const nat64 = a === 0x64 && b === 0xff9b && f === 0
  const mapped = a === 0 && b === 0 && f === 0xffff
  return (nat64 || mapped) && c === 0 && d === 0 && e === 0 ? ipv4Text(g, h) : undefined
}

/**
 * Whether an address is one that the operator's own translator writes for an IPv4 caller (RFC 8215). Where it puts the IPv4
 * address is its own choice (RFC 6052), so the whole address names the caller, who cannot choose another.
 */
function isLocalNat64([a, b, c]: readonly number[]): boolean {
  return a === 0x64 && b === 0xff9b && c === 1
}

/** The last two groups of an IPv6 address that ends in this IPv4 address. */
function hexGroups(ipv4: string): string {
  const [a, b, c, d] = ipv4.split('.').map(Number) as [number, number, number, number]
  return `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`
}

function ipv4Text(high: number, low: number): string {
  return `${high >> 8}.${high & 255}.${low >> 8}.${low & 255}`
}

/**
 * The network that contains an IPv6 address. Callers are counted by network, because a provider gives each customer at
 * least a /64, which is 2^64 addresses.
 */
function networkOf(groups: readonly number[], prefix: number): string {
  const masked = groups.map((group, i) => {
    const bits = Math.min(16, Math.max(0, prefix - 16 * i))
    return group & (0xffff << (16 - bits))
  })
  const text = new ipaddr.IPv6(masked).toRFC5952String()
  return prefix === 128 ? text : `${text}/${prefix}`
}

/*
 * Node drops the address of a closed connection. A caller that hangs up while a session is looked up would be counted as one
 * without an address, which is a second allowance. Addresses are therefore read before a list or a key is waited for, and
 * kept with the request for all limiters that see it.
 */

/** By request. In a WeakMap, as few requests wait, and a property that is not there takes longer to look for in Express. */
const kept = inCommon('addresses', () => new WeakMap<object, Addresses>())

/** The addresses of a request when the first limiter saw it. */
interface Addresses {
  readonly address: string | undefined
  readonly socketAddress: string | undefined
  /** Whether there is no address because the caller had hung up by then. */
  readonly hungUp: boolean
}

/** A reader of requests that also names the object under which their addresses are kept. */
export interface AddressSource<Req> extends RequestReader<Req> {
  identity(req: Req): object
}

/** The addresses of a request: those that were kept, else the current ones. */
export function addressesOf<Req>(req: Req, source: AddressSource<Req>): Addresses {
  return kept.get(source.identity(req)) ?? readAddresses(req, source)
}

/**
 * Makes the functions that read a request's addresses. Those that `keepAddresses` has kept are returned as they were;
 * others are read now, which fails once the connection is gone.
 */
export function addressReader<Req>(
  source: AddressSource<Req>,
): Pick<RequestReader<Req>, 'address' | 'socketAddress'> & { hungUp(req: Req): boolean } {
  return {
    /** Only the address that the framework reports, which is enough for most requests. */
    address(req) {
      const known = kept.get(source.identity(req))
      if (known) return known.address
      try {
        return source.address(req)
      } catch {
        return readAddresses(req, source).address
      }
    },
    socketAddress: (req) => addressesOf(req, source).socketAddress,
    hungUp: (req) => addressesOf(req, source).hungUp,
  }
}

/**
 * Keeps the addresses of a request for later. To be called before anything is waited for, because a framework may not
 * know them any more once the connection has closed.
 */
export function keepAddresses<Req>(req: Req, source: AddressSource<Req>): void {
  const request = source.identity(req)
  if (!kept.has(request)) kept.set(request, readAddresses(req, source))
}

/** Thrown by keys that need an address if the caller hung up before one could be read. The guard then ends the request. */
export class HungUpError extends Error {
  override readonly name = 'HungUpError'

  constructor() {
    super('the caller hung up before its address could be read')
  }
}

/** Whether an error says that the caller has hung up. */
export function isHungUp(error: unknown): error is HungUpError {
  // By its name: the ESM and the CJS build of this package, with a class each, may meet in one process.
  return (error as Error | undefined)?.name === 'HungUpError'
}

/**
 * The addresses of a request as they are now. A caller has hung up if its socket has no address any more, or if reading
 * it fails for that reason.
 */
function readAddresses<Req>(req: Req, source: AddressSource<Req>): Addresses {
  try {
    const address = source.address(req)
    const socketAddress = source.socketAddress(req)
    // Even if the framework reports an address, since that may be any text which a caller wrote into a header.
    const hungUp = !socketAddress && source.hungUp?.(req) === true
    return { address, socketAddress, hungUp }
  } catch (error) {
    // HTTP/2 throws once a session is gone.
    if (source.hungUp?.(req)) return { address: undefined, socketAddress: undefined, hungUp: true }
    throw error
  }
}

/**
 * Remembers what a pure function made of the texts that it got recently, such as the addresses of callers that send one
 * request after another. The last characters of a text choose its place, because texts differ there, and it replaces the
 * text that was there. Memory is thus bounded, and a text that is not remembered costs hardly more than without this.
 * undefined stays undefined.
 */
export function rememberRecent<T>(make: (text: string) => T): (text: string | undefined) => T | undefined {
  const texts = Array<string>(PLACES).fill('')
  const results = Array<T>(PLACES).fill(make(''))
  return (text) => {
    if (text === undefined) return undefined
    if (text.length > LONGEST) return make(text)
    let hash = 0
    for (let i = Math.max(0, text.length - MIXED); i < text.length; i++) {
      hash = (Math.imul(hash, 31) + text.charCodeAt(i)) | 0
    }
    const place = hash & (PLACES - 1)
    if (texts[place] === text) return results[place]!
    const own = ownText(text)
    texts[place] = own
    return (results[place] = make(own))
  }
}

const PLACES = 256
/** In UTF-16 units: no address is longer, and long texts fill no memory. */
const LONGEST = 64
/** Characters at the end of a text that choose its place. */
const MIXED = 6

/*
 * Which proxies a framework trusts to set X-Forwarded-For. Each function is used by the framework's own adapter and by that
 * of Nest, which runs on either.
 */

/** Detects proxy settings under which an address does not identify a caller. */
export function proxyWarning<Req>(req: Req, reader: RequestReader<Req>): SetupWarning | undefined {
  const trust = reader.proxyTrust(req)
  if (trust === 'all') return 'TRUST_PROXY_PERMISSIVE'
  const raw = reader.rawHeaders?.(req)
  const header = raw ? rawProxyHeader(raw) : proxyHeader(req, reader)
  if (header === FORWARDED) return 'FORWARDED_IGNORED'
  return header && trust === 'none' ? 'FORWARDED_NOT_TRUSTED' : undefined
}

const X_FORWARDED_FOR = 'x-forwarded-for'
const FORWARDED = 'forwarded'

type ProxyHeader = typeof X_FORWARDED_FOR | typeof FORWARDED

/** The header by which a proxy names its client: X-Forwarded-For, else Forwarded; undefined if the request has neither. */
function proxyHeader<Req>(req: Req, reader: RequestReader<Req>): ProxyHeader | undefined {
  if (reader.header(req, X_FORWARDED_FOR) !== undefined) return X_FORWARDED_FOR
  return reader.header(req, FORWARDED) === undefined ? undefined : FORWARDED
}

/**
 * The header by which a proxy names its client, found in the raw list of names and values in one pass. Few names have
 * one of the two lengths, and only these are compared.
 */
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

/** How many proxies the Express application of a request trusts, by its setting 'trust proxy': 'all', 'some' or 'none'. */
export function expressTrust({ app }: { readonly app?: ExpressAppLike | undefined }): ProxyTrust {
  // A mounted application inherits settings through the prototype, so none has to be searched for as `app.get` does.
  const setting = app?.settings?.['trust proxy']
  return setting === true ? 'all' : setting ? 'some' : 'none'
}

/** How many proxies a Fastify server trusts, as its requests show: the setting `trustProxy` itself cannot be read. */
export function fastifyTrust(request: FastifyRequestLike): ProxyTrust {
  if (request.ips === undefined) return 'none'
  if (trustsStrangers(request)) return 'all'
  // A single entry is the socket's own, which is not trusted. With a number for `trustProxy`, there is never another one.
  return request.ips.length > 1 ? 'some' : 'none'
}

/**
 * Whether a Fastify server trusts every proxy. That is tried once for each server, with a made-up request from an
 * unknown address through 30 unknown proxies, more than a real chain ever has.
 */
function trustsStrangers({ server, constructor }: FastifyRequestLike): boolean {
  return getOrMake(TRUSTS, server, () => {
    const raw = {
      socket: { remoteAddress: STRANGER },
      headers: { 'x-forwarded-for': Array(30).fill(STRANGER).join() },
    }
    const ips = Reflect.get(constructor.prototype as object, 'ips', { raw }) as string[]
    return ips.length > 30
  })
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
