import { readOption, whole } from '@sluice/core/internal'
import type { RequestReader } from './platform.js'

/** The option of platforms whose framework has no setting for proxies. */
export interface ProxyOptions {
  /**
   * How many proxies are in front of the application. Each must append its client's address to X-Forwarded-For. With 0 that
   * header is ignored. Callers that can bypass the proxies choose their own address.
   * @default 0
   */
  readonly trustProxy?: number
}

/**
 * Makes the function that reads a caller's address behind `trustProxy` proxies. Each proxy appends the address of its
 * client to X-Forwarded-For. So with n proxies the n-th entry from the end is what the outermost proxy saw; the caller
 * may have forged all entries before it. With fewer entries the first one is taken; without the header, the socket's address.
 * @throws {PolicyError} INVALID_OPTION for a number that is not whole, or not between 0 and 1000.
 */
export function behindProxies<Req>(
  { header, socketAddress }: Pick<RequestReader<Req>, 'header' | 'socketAddress'>,
  trustProxy: unknown,
): RequestReader<Req>['address'] {
  const proxies = readOption(PROXIES, trustProxy, 'trustProxy', { what: 'rateLimit' })
  return (req) => {
    const list = proxies > 0 && header(req, 'x-forwarded-for')
    return list ? list.split(',').slice(-proxies)[0]!.trim() : socketAddress(req)
  }
}

/** The setting of this option for one proxy. */
export const PROXY_SETTING = 'the option trustProxy: 1'

const PROXIES = whole(0, 1000, 0)
