import type { RequestReader } from './platform.js'

/*
 * Whose X-Forwarded-For a framework believes: nobody's, that of some proxies, or everybody's. Read by its own adapter,
 * and by that of Nest, which runs on either.
 */

/** As the setting 'trust proxy' of an application of Express's says. */
export function expressTrust(app: ExpressApp | undefined): ProxyTrust {
  const setting = app?.get('trust proxy')
  return setting === true ? 'all' : setting ? 'some' : 'none'
}

/** As far as a request of Fastify's tells. */
export function fastifyTrust(request: FastifyRequest): ProxyTrust {
  if (request.ips === undefined) return 'none'
  if (trustsStrangers(request)) return 'all'
  // Alone in the list: whoever is at the other end is not believed. With a number of proxies, nobody ever is.
  return request.ips.length > 1 ? 'some' : 'none'
}

/**
 * Whether it believes everybody. The setting cannot be read, so Fastify is asked, once, about a request that a stranger
 * brings from more strangers than there ever are proxies in a row.
 */
function trustsStrangers({ server, constructor }: FastifyRequest): boolean {
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

interface ExpressApp {
  get(setting: string): unknown
}

interface FastifyRequest {
  readonly server: object
  /** From the socket outwards, as far as they are believed; undefined where no proxy is. */
  readonly ips?: readonly string[] | undefined
}
