import { InputError, PolicyError } from '@sluice/core'
import { expectedButGot, sha256 } from '@sluice/core/internal'
import type { MaybePromise } from '@sluice/core/store'
import { addressKey, type KeyFunction, type KeySource } from './caller.js'
import { clientAddress } from './client-address.js'
import { joinKey, type KeyPart } from './key-parts.js'
import { chain, type RequestReader } from './platform.js'
import { toBeCalled } from './slips.js'

/**
 * One key for each user and action, or for each user if no action is given. `pick` returns the user's id and may be async.
 * A request without a user is counted by address.
 * @throws {InputError} INVALID_KEY, on the request, if `pick` returns something that is not an id.
 */
export const byUser = toBeCalled(function byUser<Req>(
  pick: (req: Req) => MaybePromise<KeyPart | null | undefined>,
  action?: string,
): KeyFunction<Req> {
  if (typeof pick !== 'function') {
    throw expectedButGot(
      PolicyError,
      'INVALID_OPTION',
      'byUser needs a function that picks the user id',
      pick,
    )
  }
  if (action !== undefined && typeof action !== 'string') {
    throw expectedButGot(PolicyError, 'INVALID_OPTION', 'the action of byUser must be a string', action)
  }
  /**
   * The key of a request for which `pick` returned `id`. A request without a user is counted by its address, as all such
   * requests would otherwise share one key. A warning tells of it, because the limiter probably runs before the authentication.
   */
  const toKey = (req: Req, source: KeySource<Req>, id: KeyPart | null | undefined): string => {
    if (id !== undefined && id !== null && id !== '') return userKey(id, action)
    source.warn('USER_MISSING')
    return addressKey(req, source)
  }
  return (req, source) => chain(pick(req), (id) => toKey(req, source, id))
}, 'byUser((req) => req.user?.id)')

/**
 * One key for each API key. Only its SHA-256 is kept, as keys show in Redis and in logs. The scheme
 * (`Bearer`, in any case) and the space around it are dropped, because callers can vary both. A request without an API key
 * is counted by address. Check API keys before the limiter: a caller that invents them has a new allowance with each.
 */
export const byApiKey = toBeCalled(function byApiKey<Req>(header = 'x-api-key'): KeyFunction<Req> {
  if (typeof header !== 'string' || header === '') {
    throw expectedButGot(PolicyError, 'INVALID_OPTION', 'byApiKey needs the name of a header', header)
  }
  const name = header.toLowerCase()
  return (req, source) => {
    const apiKey = apiKeyIn(name, source.header(req, name))
    if (apiKey) return hashedKey(apiKey)
    source.warn('API_KEY_MISSING')
    return addressKey(req, source)
  }
}, "byApiKey('x-api-key')")

/** The API key in a header of this name, in lower case: its value without the scheme and the space around. */
export function apiKeyIn(name: string, value: string | undefined): string | undefined {
  return value?.trim().replace(CREDENTIALS.has(name) ? ANY_SCHEME : BEARER, '')
}

/**
 * The key that `byUser` gives for this id, and for the action if there is one, for example to block or to reset it. An
 * empty id is refused, as it would be one key for many users.
 * @throws {InputError} INVALID_KEY if `id` is not an id.
 */
export function userKey(id: KeyPart, action?: string): string {
  if (id === '') throw expectedButGot(InputError, 'INVALID_KEY', 'the id of a user must not be empty', id)
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
    throw expectedButGot(InputError, 'INVALID_KEY', 'an API key must be a text that is not empty', apiKey)
  return hashedKey(bare)
}

/** The headers of RFC 9110 whose value begins with a scheme. */
const CREDENTIALS = new Set(['authorization', 'proxy-authorization'])
const ANY_SCHEME = /^(?:[!#$%&'*+.^_`|~\w-]+[ \t]+|bearer$)/i
const BEARER = /^bearer(?:[ \t]+|$)/i

/** The key of an API key: its SHA-256, as keys show in Redis and in logs. */
function hashedKey(apiKey: string): string {
  return joinKey('api-key', sha256(new TextEncoder().encode(apiKey)))
}

/**
 * Whether a key contains the caller's own IPv6 address, raw or as `joinKey` escapes it: then a caller has as many keys,
 * and allowances, as its network has addresses. Keys of `byIp` begin with `ip:` and contain only the network. A name with
 * a slash is that of an IPv6 network; an IPv4 caller has none.
 */
export function holdsRawIpv6<Req>(key: string, req: Req, reader: RequestReader<Req>): boolean {
  if (typeof key !== 'string' || !LIKE_IPV6.test(key) || key.startsWith('ip:')) return false
  const address = reader.address(req)
  if (!address || !clientAddress(address)?.includes('/')) return false
  return key.includes(address) || key.includes(joinKey(address))
}

/** Found in every IPv6 address, raw or as a part of `joinKey`. */
const LIKE_IPV6 = /::|(?::[\da-f]{1,4}){3}|%3A%3A|(?:%3A[\da-f]{1,4}){3}/i
