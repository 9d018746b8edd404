import { InputError } from '@sluice/core'
import {
  type DeclarationOf,
  expectedButGot,
  sharedInProcess,
  copiedText,
  readOptions,
  whole,
} from '@sluice/core/internal'
import type { MaybePromise } from '@sluice/core/store'
import { bareAddress, clientAddress, IPV6_PREFIX } from './client-address.js'
import { getOrMake } from './get-or-make.js'
import type { RequestReader } from './platform.js'
import type { SetupWarning } from './setup-warnings.js'
import { toBeCalled } from './slips.js'

/** The reader of requests that key functions get, so that one key function works in every framework. */
export interface KeySource<Req> extends RequestReader<Req> {
  /** Reports a warning, once for each limiter. */
  warn(warning: SetupWarning): void
}

/** Returns the key that a request is counted under. */
export type KeyFunction<Req> = (req: Req, source: KeySource<Req>) => MaybePromise<string>

export interface ByIpOptions {
  /**
   * How many leading bits of an IPv6 address identify a caller, 32 to 128.
   * @default 64
   */
  readonly ipv6Prefix?: number
}

/**
 * One key for each client address (see `clientAddress`): the framework's address, or the socket's if that is not an IP.
 * @throws {PolicyError} INVALID_OPTION for a prefix out of bounds.
 */
export const byIp = toBeCalled(function byIp<Req>(options: ByIpOptions = {}): KeyFunction<Req> {
  const toKey = addressKeys(readOptions(BY_IP, options, { what: 'byIp' }).ipv6Prefix)
  return (req, source) => callerOf(req, source, toKey) ?? UNKNOWN
}, 'byIp()')

/**
 * The key that `byIp` gives for this address, for example to block or to reset it. An IPv6 address is cut to its network
 * of `ipv6Prefix` bits.
 * @throws {InputError} INVALID_KEY if it is not an IP address.
 */
export function ipKey(address: string, options: ByIpOptions = {}): string {
  const caller = clientAddress(address, readOptions(BY_IP, options, { what: 'ipKey' }).ipv6Prefix)
  if (caller === undefined)
    throw expectedButGot(InputError, 'INVALID_KEY', 'address must be an IP address', address)
  return `ip:${caller}`
}

const BY_IP = { ipv6Prefix: whole(32, 128, IPV6_PREFIX) } satisfies DeclarationOf<ByIpOptions>

/** The key of all callers without an address. */
const UNKNOWN = 'ip:unknown'

/**
 * The key of a request by its caller's address, an IPv6 address by its /64 network. Requests without an address share one
 * key.
 */
export function addressKey<Req>(req: Req, source: KeySource<Req>): string {
  return callerOf(req, source, DEFAULT_KEYS) ?? UNKNOWN
}

/**
 * The name of a request's caller, which `nameOf` makes of the address that the framework reports, or of the socket's
 * address if the framework's is no IP address. undefined for a request without an address. `source` reads the request,
 * and gets a warning about an address that is missing or unreadable, and about proxy settings under which an address
 * identifies no caller.
 * @throws {Error} HungUpError if the address is missing because the caller has hung up.
 */
export function callerOf<Req>(req: Req, source: KeySource<Req>, nameOf: NameAddress): string | undefined {
  const address = source.address(req)
  const named = nameOf(address)
  const caller = named ?? nameOf(source.socketAddress(req))
  if (!caller && source.hungUp?.(req)) throw Object.assign(new Error('hung up'), { name: HUNG_UP })
  if (caller && source.trustsAll?.(req)) source.warn('TRUST_PROXY_PERMISSIVE')
  else if (!caller || (!named && address !== undefined)) source.warn('ADDRESS_UNKNOWN')
  else warnOfProxy(req, source, caller, nameOf)
  return caller
}

/** Names the caller at an address as a socket or a proxy header gives it; undefined for a text that is not an address. */
type NameAddress = (text: string | undefined) => string | undefined

/**
 * Makes the function that turns the text of an address into the caller's key, with an IPv6 address cut to its first
 * `ipv6Prefix` bits; undefined for a text that is no address. It remembers the keys of recent addresses.
 */
function addressKeys(ipv6Prefix: number): NameAddress {
  return rememberRecent((text) => {
    const address = clientAddress(text, ipv6Prefix)
    return address && `ip:${address}`
  })
}

/*
 * Node drops the address of a closed connection. A caller that hangs up while a session is looked up would be counted as one
 * without an address, which is a second allowance. Addresses are therefore read before a list or a key is waited for, and
 * kept with the request for all limiters that see it.
 */

/** Addresses by request. A WeakMap, as few requests wait, and Express takes longer to look for a property that is not there. */
const keptAddresses = sharedInProcess('addresses', () => new WeakMap<object, Addresses>())

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

/** The addresses of a request: those that `keepAddresses` has kept, otherwise those that the connection has now. */
export function addressesOf<Req>(req: Req, source: AddressSource<Req>): Addresses {
  return keptAddresses.get(source.identity(req)) ?? readAddresses(req, source)
}

/**
 * Makes the functions that read a request's addresses, and whether its caller has hung up. If `keepAddresses` kept the
 * addresses when the request arrived, these are returned; otherwise they are read now. Where the connection is gone and
 * reading fails, the result is undefined and `hungUp` returns true.
 */
export function addressReader<Req>(
  source: AddressSource<Req>,
): Pick<RequestReader<Req>, 'address' | 'socketAddress'> & { hungUp(req: Req): boolean } {
  return {
    /**
     * The address that the framework reports, which is enough for most requests, so the socket's is not read too. If
     * reading it throws, `readAddresses` finds out whether the caller has hung up, and throws the error on if not.
     */
    address(req) {
      const kept = keptAddresses.get(source.identity(req))
      if (kept) return kept.address
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
 * Reads the addresses of a request and keeps them for all limiters that see it, unless the first limiter has done so. To
 * be called before anything is waited for, because a framework may not know the addresses any more once the connection
 * has closed.
 */
export function keepAddresses<Req>(req: Req, source: AddressSource<Req>): void {
  getOrMake(keptAddresses, source.identity(req), () => readAddresses(req, source))
}

/**
 * Whether an error says that the caller hung up before its address could be read, so no key could be found. The guard then
 * ends the request.
 */
export function isHungUp(error: unknown): boolean {
  // By its name: the ESM and the CJS build of this package may meet in one process.
  return (error as Error | undefined)?.name === HUNG_UP
}

const HUNG_UP = 'HungUpError'

/**
 * The addresses of a request as the framework and the socket report them now, and whether the caller has hung up: its
 * socket has no address any more and `source.hungUp` confirms that, or reading the addresses throws for that reason. Any
 * other error is thrown on.
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
 * Returns `make`, a pure function of a text, with a memory of its recent results; for example of the key of a caller that
 * sends one request after another. The memory is a table of fixed size: the last characters of a text, in which texts
 * differ most, choose its place, and it replaces the text that was there. So memory is bounded, and a text that is not
 * remembered costs hardly more than without this. Texts longer than any address are not remembered; undefined is
 * the empty text.
 */
export function rememberRecent<T>(make: (text: string) => T): (text: string | undefined) => T | undefined {
  const texts = Array<string>(PLACES).fill('')
  const results = Array<T>(PLACES).fill(make(''))
  return (text = '') => {
    if (text.length > LONGEST) return make(text)
    let hash = 0 // of 32 bits, of which the low ones are the place
    for (let i = Math.max(0, text.length - MIXED); i < text.length; i++) {
      hash = (Math.imul(hash, 31) + text.charCodeAt(i)) | 0
    }
    const place = hash & (PLACES - 1)
    if (texts[place] === text) return results[place]!
    const own = copiedText(text)
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
 * What a framework makes of the entries that proxies add to X-Forwarded-For. Each function is used by the framework's own adapter
 * and by that of Nest, which runs on either.
 */

/**
 * Warns if all clients of a proxy are counted as one caller. That is so if `caller`, the name of the request's caller, is that of
 * the connection, and a header of the proxy begins with an address of another name. `nameOf` names addresses.
 */
function warnOfProxy<Req>(req: Req, source: KeySource<Req>, caller: string, nameOf: NameAddress): void {
  const header = proxyHeader(req, source)
  if (!header || caller !== nameOf(source.socketAddress(req))) return
  // AWS names the caller as that of the connection, and in the header as well.
  if (caller === nameOf(source.header(req, header)?.split(',')[0])) return
  source.warn(header === FORWARDED ? 'FORWARDED_IGNORED' : 'FORWARDED_NOT_TRUSTED')
}

const X_FORWARDED_FOR = 'x-forwarded-for'
const FORWARDED = 'forwarded'

/**
 * The name of the header by which a proxy names its client: X-Forwarded-For, else Forwarded, else undefined. Node parses headers
 * when they are first asked for, so its raw list (names and values in turn) is searched where the request has one. Few names have
 * the length of one of the two, and only these are compared.
 */
function proxyHeader<Req>(req: Req, reader: RequestReader<Req>): string | undefined {
  const raw = reader.rawHeaders?.(req)
  // Adapters of AWS Lambda make requests with an empty list.
  if (!raw?.length) return PROXY_HEADERS.find((name) => reader.header(req, name))
  let found: string | undefined
  for (let i = 0; i < raw.length; i += 2) {
    const { length } = raw[i]!
    if (length !== X_FORWARDED_FOR.length && length !== FORWARDED.length) continue
    const name = raw[i]!.toLowerCase()
    if (name === X_FORWARDED_FOR) return name
    if (name === FORWARDED) found = name
  }
  return found
}

const PROXY_HEADERS = [X_FORWARDED_FOR, FORWARDED]

/*
 * Properties of Express's requests and responses are read by `Reflect.get`. Express sets the prototype of each object, so V8 has a
 * hidden class for each and optimises every ordinary access anew, in 0.2 to 1.5 us; `Reflect.get` it does not optimise so.
 */

/**
 * Whether the Express application of a request trusts every proxy to name its client, by its setting 'trust proxy'. Any
 * other value of it than true (a number, a list, a function) trusts some.
 */
export function expressTrustsAll(req: object): boolean {
  const app = Reflect.get(req, 'app') as ExpressAppLike | undefined
  // A mounted application inherits settings through the prototype, so none has to be searched for as `app.get` does.
  return app?.settings?.['trust proxy'] === true
}

/**
 * The address of a request's caller as Express or Fastify (whose request has Node's as `raw`) reports it by its getter `ip`. If
 * a proxy is written with its port, the framework does not find it in its list of trusted proxies, and reports the proxy for
 * all callers behind it. The getter is then called again on a stand-in for the request, whose header has no ports; it still
 * passes only the proxies that it trusts. Adapters of AWS Lambda set an `ip` of their own on requests of Express, which is empty
 * behind a load balancer; then the getter of the prototype is called.
 */
export function reportedAddress(req: object, raw: NodeLike = req): string | undefined {
  const ip = Reflect.get(req, 'ip') as string | undefined
  if (ip && bareOf(ip) === ip) return ip
  const forwarded = raw.headers?.[X_FORWARDED_FOR]?.toString()
  if (!forwarded) return ip
  const entries = forwarded.split(',').map((entry) => bareAddress(entry.trim()) ?? entry)
  const standIn = {
    __proto__: raw,
    headers: { [X_FORWARDED_FOR]: entries.join() },
    // Functions of applications that trust by address expect a text.
    socket: { remoteAddress: raw.socket?.remoteAddress ?? '' },
  }
  const asked = raw === req ? standIn : { __proto__: req, raw: standIn }
  return Reflect.get(ip ? req : Object.getPrototypeOf(req), 'ip', asked)
}

/** An address without its port: the same text, unless it has one. */
const bareOf = /* @__PURE__ */ rememberRecent((text) => bareAddress(text) ?? text)

interface NodeLike {
  readonly headers?: Readonly<Record<string, string | readonly string[] | undefined>>
  readonly socket?: { readonly remoteAddress?: string | undefined } | null
}

/**
 * Whether a Fastify server trusts every proxy to name its client; found out once for each server, as its setting `trustProxy`
 * cannot be read. The server's getter `ips` (of the class of its requests) is called on a made-up request that came from an
 * unknown address through unknown proxies. If it returns all of these, the server trusts anyone: no setting that names or
 * counts real proxies reaches that far. Without `trustProxy` a request has no `ips`.
 */
export function fastifyTrustsAll({ server, ips, constructor }: FastifyRequestLike): boolean {
  if (ips === undefined) return false
  return getOrMake(TRUSTS, server, () => {
    const raw = {
      socket: { remoteAddress: STRANGER },
      headers: { 'x-forwarded-for': Array(STRANGERS).fill(STRANGER).join() },
    }
    return (Reflect.get(constructor.prototype as object, 'ips', { raw }) as string[]).length > STRANGERS
  })
}

const STRANGER = '203.0.113.254'
/** More proxies than any application has in front of it. */
const STRANGERS = 30
const TRUSTS = new WeakMap<object, boolean>()

interface ExpressAppLike {
  readonly settings?: Readonly<Record<string, unknown>>
}

interface FastifyRequestLike {
  readonly server: object
  /** The addresses from the socket outwards, as far as they are trusted; undefined if no proxy is. */
  readonly ips?: readonly string[] | undefined
}

/** Behind the constants of `rememberRecent`, which it calls at once. */
const DEFAULT_KEYS = addressKeys(IPV6_PREFIX)
