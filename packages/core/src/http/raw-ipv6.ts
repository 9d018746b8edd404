import { clientAddress } from './client-address.js'
import { joinKey } from './keys.js'
import type { RequestReader } from './platform.js'

/** Whether a key holds the caller's own IPv6 address, raw or as a part of `joinKey`. `byIp` masks it, and names the kind. */
export function holdsRawIpv6<Req>(key: string, req: Req, reader: RequestReader<Req>): boolean {
  if (typeof key !== 'string' || !LIKE_IPV6.test(key) || key.startsWith('ip:')) return false
  const address = reader.address(req)
  if (!address || !clientAddress(address)?.includes('/')) return false
  return key.includes(address) || key.includes(joinKey(address))
}

/** What every IPv6 address has, as it stands or as a part of `joinKey`. */
const LIKE_IPV6 = /::|(?::[\da-f]{1,4}){3}|%3A%3A|(?:%3A[\da-f]{1,4}){3}/i
