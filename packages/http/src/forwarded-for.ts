import { readOne, whole } from '@sluice/core/internal'
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
 * Makes the functions that read a caller's address behind `trustProxy` proxies. Each proxy appends the address of its
 * client to X-Forwarded-For. So with n proxies the n-th entry from the end is what the outermost proxy saw; the caller
 * may have forged all entries before it. Without the header it is the socket's address.
 * @throws {PolicyError} INVALID_OPTION for a number that cannot be.
 */
export function behindProxies<Req>(
  { header, socketAddress }: Pick<RequestReader<Req>, 'header' | 'socketAddress'>,
  trustProxy: unknown,
): Pick<RequestReader<Req>, 'address' | 'proxyTrust'> {
  const proxies = readOne(PROXIES, trustProxy, 'trustProxy', { what: 'rateLimit' })
  if (proxies === 0) return { address: socketAddress, proxyTrust: () => 'none' }
  return {
    /**
     * The entry of X-Forwarded-For that the outermost of the trusted proxies added, counted from the end; with fewer
     * entries the first. Without the header it is the socket's address.
     */
    address(req) {
      const chain = header(req, 'x-forwarded-for')?.split(',') ?? []
      return chain.at(-Math.min(proxies, chain.length))?.trim() || socketAddress(req)
    },
    proxyTrust: () => 'some',
  }
}

/** The setting of this option for one proxy. */
export const PROXY_SETTING = 'the option trustProxy: 1'

const PROXIES = whole(0, 1000, 0)
