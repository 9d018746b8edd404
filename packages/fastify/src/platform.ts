import { onResponseSent, type Platform } from '@sluice/core/http'
import type { FastifyReply, FastifyRequest } from 'fastify'

export const fastify: Platform<FastifyRequest, FastifyReply> = {
  identity: (request) => request,
  address: (request) => request.ip,
  socketAddress: (request) => request.socket.remoteAddress,
  header: (request, name) => request.headers[name]?.toString(),
  proxyTrust(request) {
    if (request.ips === undefined) return 'none'
    if (trustsStrangers(request)) return 'all'
    // Alone in the list: whoever is at the other end is not believed. With a number of proxies, nobody ever is.
    return request.ips.length > 1 ? 'some' : 'none'
  },
  headersSent: (reply) => reply.sent || reply.raw.headersSent,
  setHeader: (reply, name, value) => void reply.header(name, value),
  setStatus: (reply, status) => void reply.code(status),
  // With a serializer Fastify adds no charset, which application/problem+json does not have.
  send: (_request, reply, body) => reply.serializer(String).send(body),
  onFinished: ({ raw }, reply, listener) => onResponseSent(raw, reply.raw, listener),
  handlerFrame: /\bpreHandlerCallback/,
}

/**
 * Whether the framework believes everybody. Its setting cannot be read, so it is asked, once, about a request that a
 * stranger brings from more strangers than there ever are proxies in a row.
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
