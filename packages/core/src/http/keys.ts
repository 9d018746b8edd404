import { expected, InputError } from '../values/errors.js'
import type { MaybePromise } from '../stores/store.js'
import { HungUpError } from './addresses.js'
import { after } from './after.js'
import { clientAddress, IPV6_PREFIX } from './client-address.js'
import { invalidOption } from './invalid-option.js'
import { type Misuse, proxyMisuse } from './misuse.js'
import type { RequestReader } from './platform.js'
import { sha256 } from '../values/sha256.js'

/** What a key function may ask beside the request, so that one key function works in every framework. */
export interface KeySource<Req> extends RequestReader<Req> {
  /** Reports a misuse, once for each limiter. */
  warn(misuse: Misuse): void
}

/** Names whom a request is counted for. */
export type KeyFunction<Req> = (req: Req, source: KeySource<Req>) => MaybePromise<string>

/** Text or a number, as databases give ids. The number 1 and the text '1' are one. */
export type KeyPart = string | number | bigint

export interface ByIpOptions {
  /** Bits of an IPv6 address that name one caller, 32 to 128; default 64. */
  readonly ipv6Prefix?: number
}

/**
 * One key for each client address (see `clientAddress`): the framework's, or the socket's where that is not an IP.
 * @throws {PolicyError} INVALID_OPTION for a prefix out of bounds.
 */
export function byIp<Req>(options: ByIpOptions = {}): KeyFunction<Req> {
  const ipv6Prefix = checkedPrefix(options)
  return (req, source) => addressKey(req, source, ipv6Prefix)
}

/**
 * One key for each user and action, or for each user where no action is named. `pick` finds the user's id and may be
 * async. A request without a user is limited by address.
 * @throws {InputError} INVALID_KEY, on the request, when `pick` gives what is not an id.
 */
export function byUser<Req>(
  pick: (req: Req) => MaybePromise<KeyPart | null | undefined>,
  action?: string,
): KeyFunction<Req> {
  if (typeof pick !== 'function') {
    throw invalidOption('byUser needs a function that picks the user id', pick)
  }
  if (action !== undefined && typeof action !== 'string') {
    throw invalidOption('the action of byUser must be a string', action)
  }
  const toKey = (req: Req, source: KeySource<Req>, id: KeyPart | null | undefined): string => {
    if (id !== undefined && id !== null && id !== '') return userKey(id, action)
    source.warn('USER_MISSING')
    return addressKey(req, source)
  }
  return (req, source) => after(pick(req), (id) => toKey(req, source, id))
}

/**
 * One key for each API key, which is kept as its SHA-256: what is read in Redis or in a log cannot be used to sign
 * in. The scheme (`Bearer`, in any case) and the space around it are not part of it: callers may vary both. A request
 * without one is limited by address. Check API keys before the limiter: who may invent them has a fresh allowance with each.
 */
export function byApiKey<Req>(header = 'x-api-key'): KeyFunction<Req> {
  if (typeof header !== 'string' || header === '') {
    throw invalidOption('byApiKey needs the name of a header', header)
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
 * Whom `byIp` counts at this address: the key to block or to reset.
 * @throws {InputError} INVALID_KEY when it is not an IP address.
 */
export function ipKey(address: string, options: ByIpOptions = {}): string {
  const caller = clientAddress(address, checkedPrefix(options))
  if (caller === undefined)
    throw expected(InputError, 'INVALID_KEY', 'address must be an IP address', address)
  return joinKey('ip', caller)
}

/**
 * Whom `byUser` counts for this id, and action where it names one: the key to block or to reset.
 * @throws {InputError} INVALID_KEY for what is not an id.
 */
export function userKey(id: KeyPart, action?: string): string {
  if (id === '') throw expected(InputError, 'INVALID_KEY', 'the id of a user must not be empty', id)
  return action === undefined ? joinKey('user', id) : joinKey('user', id, action)
}

/**
 * Whom `byApiKey` counts for this API key: the key to block or to reset. `Bearer` before it and space around it are dropped.
 * @throws {InputError} INVALID_KEY for an empty one.
 */
export function apiKeyKey(apiKey: string): string {
  const bare = typeof apiKey === 'string' ? apiKey.trim().replace(BEARER, '') : ''
  if (bare === '')
    throw expected(InputError, 'INVALID_KEY', 'an API key must be a text that is not empty', apiKey)
  return hashedKey(bare)
}

/**
 * Joins parts so that two lists of parts never meet in one key: `a:b` and `c` differ from `a` and `b:c`.
 * @throws {InputError} INVALID_KEY for no parts, or one that is missing or not an id.
 */
export function joinKey(...parts: readonly KeyPart[]): string {
  let key = escaped(parts[0]!)
  for (let i = 1; i < parts.length; i++) key += `:${escaped(parts[i]!)}`
  return key
}

/** Headers of RFC 9110, whose value begins with a scheme. */
const CREDENTIALS = new Set(['authorization', 'proxy-authorization'])
const ANY_SCHEME = /^(?:[!#$%&'*+.^_`|~\w-]+[ \t]+|bearer$)/i
const BEARER = /^bearer(?:[ \t]+|$)/i

function hashedKey(apiKey: string): string {
  return joinKey('api-key', sha256(new TextEncoder().encode(apiKey)))
}

function checkedPrefix({ ipv6Prefix = IPV6_PREFIX }: ByIpOptions): number {
  if (Number.isInteger(ipv6Prefix) && ipv6Prefix >= 32 && ipv6Prefix <= 128) return ipv6Prefix
  throw invalidOption('ipv6Prefix must be a whole number from 32 to 128', ipv6Prefix)
}

function addressKey<Req>(req: Req, source: KeySource<Req>, ipv6Prefix?: number): string {
  const misuse = proxyMisuse(req, source)
  if (misuse) source.warn(misuse)
  const address =
    clientAddress(source.address(req), ipv6Prefix) ?? clientAddress(source.socketAddress(req), ipv6Prefix)
  if (address !== undefined) return `ip:${escaped(address)}`
  if (source.hungUp?.(req)) throw new HungUpError('the caller hung up before its address could be read')
  source.warn('ADDRESS_UNKNOWN')
  return 'ip:unknown'
}

function escaped(part: KeyPart): string {
  const text = typeof part === 'string' ? part : numberText(part)
  return /[%:]/.test(text) ? text.replaceAll('%', '%25').replaceAll(':', '%3A') : text
}

/** An object would become `[object Object]`, and undefined `undefined`: one key for everybody. */
function numberText(part: number | bigint): string {
  if (typeof part === 'bigint' || Number.isFinite(part)) return String(part)
  throw expected(InputError, 'INVALID_KEY', 'a part of a key must be a string, a number or a bigint', part)
}
