/** What is read of a request of Fastify's. */
interface FastifyRequest {
  readonly server: object
  /** From the socket outwards, as far as they are believed; undefined where no proxy is. */
  readonly ips?: readonly string[] | undefined
}

/** Whose X-Forwarded-For Fastify believes, as far as the request tells: nobody's, that of some, or everybody's. */
export function fastifyTrust(request: FastifyRequest): 'none' | 'some' | 'all' {
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
