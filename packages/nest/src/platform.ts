import { type ExecutionContext, HttpException } from '@nestjs/common'
import { PolicyError } from '@sluice/core'
import {
  expressTrustsAll,
  fastifyTrustsAll,
  hasHungUp,
  isTcp,
  onConnectionLost,
  onResponseSent,
  overseeHead,
  overseeHeads,
  type Platform,
  PROBLEM_TYPE,
  reportedAddress,
  responseEnded,
} from '@sluice/http'
import type { ServerResponse } from 'node:http'
import type { Call } from './options.js'

/**
 * The call that Nest is about to handle: its request and response, if there is one, of HTTP, of a GraphQL operation, or
 * of a WebSocket message, whose `req` is the client. undefined in contexts that are not counted, such as those of
 * microservices.
 */
export function callOf(context: ExecutionContext): Call | undefined {
  const kind = context.getType<string>()
  if (kind !== 'http' && kind !== 'ws' && kind !== 'graphql') return undefined
  const [first, second, operation] = context.getArgs()
  const { req, res } = kind === 'graphql' ? exchangeOf(operation) : { req: first, res: second }
  if (kind === 'ws') return { kind, req, res: undefined, context, decisions: [], raw: undefined }
  return { kind, req, res, context, decisions: [], raw: res && Reflect.get(res, 'raw') }
}

/**
 * The request and the response behind a GraphQL operation, found in its context, where servers keep them in different
 * places: graphql-ws has the request in `extra`, Mercurius a `reply` beside it. An empty object stands for a request that
 * is not there.
 */
function exchangeOf(operation: Call['req']): Pick<Call, 'req' | 'res'> {
  const { req: given, res, reply } = operation ?? {}
  const req = given?.extra?.request ?? given ?? operation?.request ?? {}
  // In a subscription, the reply of Mercurius has only a request.
  return { req, res: res ?? (reply?.raw ? reply : req.res) }
}

/**
 * The socket of `req`: of a request, or of a gateway's client. A client of the package `ws` has it as `_socket`; one of
 * socket.io has it in the request that opened the connection.
 */
function socketOf(req: Call['req']): Call['req'] {
  return req.socket ?? req._socket ?? req.request?.socket
}

/** The method `setHeader` of a response of Express. */
const setHeaderOf = (res: object) => Reflect.get(res, 'setHeader') as ServerResponse['setHeader']

/** Reads requests of Express and of Fastify, which wraps Node's as `raw`, and clients of gateways. */
export const nest: Platform<Call, Call> = {
  // Never an object that lives as long as a connection; it would keep all decisions about it.
  identity: ({ req, res, context }) => (res ? req : context),
  keepDecisions: ({ res, raw }) => (res && !raw ? 'beside' : 'on'),
  // Each operation of a GraphQL request is a call.
  repeats: ({ kind }) => kind === 'graphql',
  decided: ({ decisions }, decision) => void decisions.push(decision),
  address: ({ req }) => reportedAddress(req, req.raw),
  socketAddress: ({ req }) => socketOf(req)?.remoteAddress,
  /**
   * Whether the caller has hung up, asked for a call that has no client address. True if the socket is gone. A socket of
   * TCP has an address for as long as it is connected, so a TCP socket without one means true as well. Other sockets, such
   * as Unix sockets, never have an address.
   */
  hungUp({ req }) {
    // A client of socket.io outlives the connection that it began with, whose end therefore proves nothing.
    if (req.handshake) return isTcp(socketOf(req))
    return hasHungUp(req.raw ?? (req._socket ? { socket: req._socket } : req))
  },
  rawHeaders: ({ req, raw }) => (raw ? req.raw?.rawHeaders : Reflect.get(req, 'rawHeaders')),
  method: ({ req }) => (req.request ?? req).method,
  url: ({ req }) => req.originalUrl ?? (req.request ?? req).url,
  header: ({ req }, name) => (req.headers ?? req.request?.headers)?.[name]?.toString(),
  trustsAll: ({ req, res, raw }) => ((res ? raw : req.raw) ? fastifyTrustsAll(req) : expressTrustsAll(req)),
  headersSent: ({ res, raw }) => Boolean(raw ? res.sent || raw.headersSent : res?.headersSent),
  atHead({ res, raw }, kept) {
    if (raw) return overseeHead(raw, kept)
    return res !== undefined && overseeHeads(res)
  },
  /**
   * Sets a header of the response, if there is one: of Fastify (which has Node's response as `raw`) by its `header`, of
   * Express by Node's `setHeader`.
   */
  setHeader({ res, raw }, name, value) {
    // `send` sets the type with the problem details: an exception filter, or a GraphQL server, may answer in another format.
    if (!res || name === 'Content-Type') return
    if (raw) res.header(name, value)
    else setHeaderOf(res).call(res, name, value)
  },
  setStatus: ({ kind, res }, status) => void (kind === 'http' && res.status(status)),
  /**
   * Returns the problem details, of which the guard makes an exception, or an exception with the caller's usage. Of HTTP, it
   * wraps the method by which exception filters send, so that the details get their content type with it.
   */
  send({ kind, res, raw }, _res, problem) {
    const isUsage = !('type' in problem)
    if (isUsage) return new HttpException(problem, 200)
    if (kind !== 'http') return problem
    const method = raw ? 'send' : 'json'
    const send = res[method]
    res[method] = function sendWithType(body: unknown) {
      if (body === problem) res.header('Content-Type', PROBLEM_TYPE)
      return send.call(res, body)
    }
    return problem
  },
  /**
   * Calls `listener` once the whole response has been sent, on Fastify that of Node inside (`raw`). It is never called
   * without a response, as in a gateway, or for a call about which no limit has decided.
   */
  onFinished({ decisions }, { req, res, raw }, listener) {
    if (res) onResponseSent(req.raw ?? req, raw ?? res, () => decisions.length > 0 && listener())
  },
  onHungUp: (_call, { res, raw }, listener) => (res ? onConnectionLost(raw ?? res, listener) : () => {}),
  /**
   * Resolves when the response to a call has ended.
   * @throws {PolicyError} INVALID_OPTION for a call that has no response, such as a message of a WebSocket.
   */
  ended({ kind, res, raw }) {
    if (res) return responseEnded(raw ?? res)
    throw new PolicyError(
      'INVALID_OPTION',
      `a call without a response (${kind}) cannot hold the permit of a semaphore`,
    )
  },
  proxySetting:
    "app.set('trust proxy', 1) on Express, new FastifyAdapter({ trustProxy: ['10.0.0.0/8'] }) with the proxies' addresses on Fastify",
  // Limiters are made when the application starts.
  handlerFrame: /(?!)/,
}
