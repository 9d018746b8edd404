import { InputError, PolicyError } from '@sluice/core'
import { type DeclarationOf, expected, read, sha256, whole } from '@sluice/core/internal'
import type { MaybePromise } from '@sluice/core/store'
import { clientAddress, HungUpError, IPV6_PREFIX, proxyWarning, rememberRecent } from './client-address.js'
import { chain, type RequestReader } from './platform.js'
import type { SetupWarning } from './setup-warnings.js'

/** The reader of requests that key functions get, so that one key function works in every framework. */
export interface KeySource<Req> extends RequestReader<Req> {
  /** Reports a warning, once for each limiter. */
  warn(warning: SetupWarning): void
}

/** Returns the key that a request is counted under. */
export type KeyFunction<Req> = (req: Req, source: KeySource<Req>) => MaybePromise<string>

/** Text or a number, as databases give ids. The number 1 and the text '1' are the same key. */
export type KeyPart = string | number | bigint

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
export function byIp<Req>(options: ByIpOptions = {}): KeyFunction<Req> {
  const toKey = addressKeys(read(BY_IP, options, { what: 'byIp' }).ipv6Prefix)
  return (req, source) => callerOf(req, source, toKey) ?? UNKNOWN
}

/**
 * One key for each user and action, or for each user if no action is given. `pick` returns the user's id and may be async.
 * A request without a user is counted by address.
 * @throws {InputError} INVALID_KEY, on the request, if `pick` returns something that is not an id.
 */
export function byUser<Req>(
  pick: (req: Req) => MaybePromise<KeyPart | null | undefined>,
  action?: string,
): KeyFunction<Req> {
  if (typeof pick !== 'function') {
    throw expected(PolicyError, 'INVALID_OPTION', 'byUser needs a function that picks the user id', pick)
  }
  if (action !== undefined && typeof action !== 'string') {
    throw expected(PolicyError, 'INVALID_OPTION', 'the action of byUser must be a string', action)
  }
  const toKey = (req: Req, source: KeySource<Req>, id: KeyPart | null | undefined): string => {
    if (id !== undefined && id !== null && id !== '') return userKey(id, action)
    source.warn('USER_MISSING')
    return addressKey(req, source)
  }
  return (req, source) => chain(pick(req), (id) => toKey(req, source, id))
}

/**
 * One key for each API key. Only its SHA-256 is kept, as keys show in Redis and in logs. The scheme
 * (`Bearer`, in any case) and the space around it are dropped, because callers can vary both. A request without an API key
 * is counted by address. Check API keys before the limiter: a caller that invents them has a new allowance with each.
 */
export function byApiKey<Req>(header = 'x-api-key'): KeyFunction<Req> {
  if (typeof header !== 'string' || header === '') {
    throw expected(PolicyError, 'INVALID_OPTION', 'byApiKey needs the name of a header', header)
  }
  const name = header.toLowerCase()
  const scheme = CREDENTIALS.has(name) ? ANY_SCHEME : BEARER
  return (req, source) => {
    const apiKey = source.header(req, name)?.trim().replace(scheme, '')
    if (apiKey) return hashedKey(apiKey)
    source.warn('API_KEY_MISSING')
    return addressKey(req, source)
  }
}

/**
 * The key that `byIp` gives for this address, for example to block or to reset it.
 * @throws {InputError} INVALID_KEY if it is not an IP address.
 */
export function ipKey(address: string, options: ByIpOptions = {}): string {
  const caller = clientAddress(address, read(BY_IP, options, { what: 'ipKey' }).ipv6Prefix)
  if (caller === undefined)
    throw expected(InputError, 'INVALID_KEY', 'address must be an IP address', address)
  return joinKey('ip', caller)
}

/**
 * The key that `byUser` gives for this id, and for the action if there is one, for example to block or to reset it.
 * @throws {InputError} INVALID_KEY if `id` is not an id.
 */
export function userKey(id: KeyPart, action?: string): string {
  if (id === '') throw expected(InputError, 'INVALID_KEY', 'the id of a user must not be empty', id)
  return action === undefined ? joinKey('user', id) : joinKey('user', id, action)
}

/**
 * The key that `byApiKey` gives for this API key, for example to block or to reset it. `Bearer` before it and the space
 * around it are dropped.
 * @throws {InputError} INVALID_KEY if it is empty.
 */
export function apiKeyKey(apiKey: string): string {
  const bare = typeof apiKey === 'string' ? apiKey.trim().replace(BEARER, '') : ''
  if (bare === '')
    throw expected(InputError, 'INVALID_KEY', 'an API key must be a text that is not empty', apiKey)
  return hashedKey(bare)
}

/**
 * Joins parts to a key. Different lists of parts give different keys: `a:b` and `c` differ from `a` and `b:c`.
 * @throws {InputError} INVALID_KEY if there are no parts, or if one is missing or not an id.
 */
export function joinKey(...parts: readonly KeyPart[]): string {
  let key = escaped(parts[0]!)
  for (let i = 1; i < parts.length; i++) key += `:${escaped(parts[i]!)}`
  return key
}

/** The headers of RFC 9110 whose value begins with a scheme. */
const CREDENTIALS = new Set(['authorization', 'proxy-authorization'])
const ANY_SCHEME = /^(?:[!#$%&'*+.^_`|~\w-]+[ \t]+|bearer$)/i
const BEARER = /^bearer(?:[ \t]+|$)/i

function hashedKey(apiKey: string): string {
  return joinKey('api-key', sha256(new TextEncoder().encode(apiKey)))
}

const BY_IP = { ipv6Prefix: whole(32, 128, IPV6_PREFIX) } satisfies DeclarationOf<ByIpOptions>

/** The key of all callers without an address. */
const UNKNOWN = 'ip:unknown'

function addressKey<Req>(req: Req, source: KeySource<Req>): string {
  return callerOf(req, source, DEFAULT_KEYS) ?? UNKNOWN
}

/**
 * The caller of a request, as `nameOf` names an address: the framework's, or the socket's if that is not an IP. undefined
 * for a request without an address, which is reported, as are proxy settings under which an address identifies no caller.
 * @throws {HungUpError} if the address is missing because the caller has hung up.
 */
export function callerOf<Req>(req: Req, source: KeySource<Req>, nameOf: NameAddress): string | undefined {
  const caller = nameOf(source.address(req)) ?? nameOf(source.socketAddress(req))
  if (caller === undefined && source.hungUp?.(req)) throw new HungUpError()
  const warning = proxyWarning(req, source)
  if (warning) source.warn(warning)
  if (caller === undefined) source.warn('ADDRESS_UNKNOWN')
  return caller
}

/** Names the caller at an address as a socket or a proxy header gives it; undefined for a text that is not an address. */
type NameAddress = (text: string | undefined) => string | undefined

/**
 * Makes the function that turns an address into the caller's key; undefined for a text that is no address. It remembers
 * recent ones.
 */
function addressKeys(ipv6Prefix: number): NameAddress {
  return rememberRecent((text) => {
    const address = clientAddress(text, ipv6Prefix)
    return address === undefined ? undefined : joinKey('ip', address)
  })
}

const DEFAULT_KEYS = addressKeys(IPV6_PREFIX)

/** A part of a key with its colons escaped, so that parts joined by colons cannot be mistaken for others. */
function escaped(part: KeyPart): string {
  const text = typeof part === 'string' ? part : numberText(part)
  return /[%:]/.test(text) ? text.replaceAll('%', '%25').replaceAll(':', '%3A') : text
}

/**
 * A number as a part of a key.
 * @throws {InputError} INVALID_KEY for a value of another type: an object would become `[object Object]`, and undefined
 * `undefined`, which is one key for all callers.
 */
function numberText(part: number | bigint): string {
  if (typeof part === 'bigint' || Number.isFinite(part)) return String(part)
  throw expected(InputError, 'INVALID_KEY', 'a part of a key must be a string, a number or a bigint', part)
}

/**
 * Whether a key contains the caller's own IPv6 address, raw or as a part of `joinKey`: then a caller has as many keys
 * as its network has addresses. Keys of `byIp` begin with `ip:` and are masked, so they never do.
 */
export function holdsRawIpv6<Req>(key: string, req: Req, reader: RequestReader<Req>): boolean {
  if (typeof key !== 'string' || !LIKE_IPV6.test(key) || key.startsWith('ip:')) return false
  const address = reader.address(req)
  if (!address || !clientAddress(address)?.includes('/')) return false
  return key.includes(address) || key.includes(joinKey(address))
}

/** Found in every IPv6 address, raw or as a part of `joinKey`. */
const LIKE_IPV6 = /::|(?::[\da-f]{1,4}){3}|%3A%3A|(?:%3A[\da-f]{1,4}){3}/i
