import {
  fastifyTrustsAll,
  hasHungUp,
  lowerCase,
  onConnectionLost,
  onResponseSent,
  responseEnded,
  overseeHead,
  type Platform,
  reportedAddress,
} from '@sluice/http'
import type { FastifyReply, FastifyRequest } from 'fastify'

/** A request of HTTP/1 or HTTP/2, with any decorations of the application. */
// oxlint-disable-next-line typescript/no-explicit-any
export type AnyRequest = FastifyRequest<any, any, any, any, any, any, any, any>
// oxlint-disable-next-line typescript/no-explicit-any
export type AnyReply = FastifyReply<any, any, any, any, any, any, any, any>

export const fastify: Platform<FastifyRequest, FastifyReply> = {
  identity: (request) => request,
  address: (request) => reportedAddress(request, request.raw),
  socketAddress: (request) => request.socket.remoteAddress,
  hungUp: ({ raw }) => hasHungUp(raw),
  method: ({ method }) => method,
  url: ({ originalUrl }) => originalUrl,
  header: (request, name) => request.headers[name]?.toString(),
  rawHeaders: ({ raw }) => raw.rawHeaders,
  trustsAll: fastifyTrustsAll,
  headersSent: (reply) => reply.sent || reply.raw.headersSent,
  setHeader: (reply, name, value) => void reply.header(lowerCase(name), value),
  atHead: ({ raw }, kept) => overseeHead(raw, kept),
  setStatus: (reply, status) => void reply.code(status),
  // With a serializer Fastify adds no charset; application/problem+json does not define one.
  send: (_request, reply, problem, text) =>
    reply.serializer((payload) => (payload === problem ? text : JSON.stringify(payload))).send(problem),
  answersLate: true,
  onFinished: ({ raw }, reply, listener) => onResponseSent(raw, reply.raw, listener),
  onHungUp: (_request, reply, listener) => onConnectionLost(reply.raw, listener),
  ended: (_request, reply) => responseEnded(reply.raw),
  proxySetting:
    "Fastify({ trustProxy: ['10.0.0.0/8'] }) with the proxies' addresses, or (_, hop) => hop < 1 where connections have none",
  handlerFrame: /\bpreHandlerCallback/,
}
