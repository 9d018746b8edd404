import type { ExecutionContext } from '@nestjs/common'
import type { ServerResponse } from 'node:http'
import { expressTrust, fastifyTrust, onResponseSent, type Platform } from '@sluice/core/http'
import { IS_NEST_11 } from './nest-version.js'
import type { Call } from './options.js'

/**
 * A call with what Fastify wraps in the response: looked up once, as V8 takes a third of a microsecond for each property that
 * requests and responses of Express do not have.
 */
interface ReadCall extends Call {
  readonly rawResponse: ServerResponse | undefined
}

/** undefined in contexts that are not counted, such as those of microservices. */
export function callOf(context: ExecutionContext): Call | undefined {
  const kind = context.getType<string>()
  const [req, res, operation] = context.getArgs()
  if (kind === 'http') return callWith(kind, { req, res }, context)
  if (kind === 'ws') return callWith(kind, { req, res: undefined }, context)
  return kind === 'graphql' ? callWith(kind, exchangeOf(operation), context) : undefined
}

function callWith(
  kind: Call['kind'],
  { req, res }: Pick<Call, 'req' | 'res'>,
  context: ExecutionContext,
): ReadCall {
  return { kind, req, res, context, decisions: [], rawResponse: res?.raw }
}

function rawResponseOf(call: Call): ServerResponse | undefined {
  return (call as ReadCall).rawResponse
}

/** Servers put different values into an operation's context: graphql-ws the request in `extra`, Mercurius a `reply` beside it. */
function exchangeOf(operation: Call['req']): Pick<Call, 'req' | 'res'> {
  const { req: given, res, reply } = operation ?? {}
  const req = given?.extra?.request ?? given ?? operation?.request ?? {}
  // In a subscription, the reply of Mercurius has only a request.
  return { req, res: res ?? (reply?.raw ? reply : req.res) }
}

/** A client of `ws` has its socket; one of socket.io has the request that opened the connection. */
function socketOf(req: Call['req']): Call['req'] {
  return req.socket ?? req._socket ?? req.request?.socket
}

/** Reads requests of Express and of Fastify, which wraps Node's as `raw`, and clients of gateways. */
export const nest: Platform<Call, Call> = {
  // Never an object that lives as long as a connection; it would keep all decisions about it.
  identity: ({ req, res, context }) => (res ? req : context),
  decisionPlace: (call) => (call.res && !rawResponseOf(call) ? 'beside' : 'on'),
  repeats: ({ kind }) => kind === 'graphql',
  decided: ({ decisions }, decision) => void decisions.push(decision),
  address: ({ req }) => req.ip,
  socketAddress: ({ req }) => socketOf(req)?.remoteAddress,
  hungUp: ({ req }) => Boolean(socketOf(req)?.destroyed),
  header: ({ req }, name) => (req.headers ?? req.request?.headers)?.[name]?.toString(),
  proxyTrust(call) {
    const { kind, req } = call
    const isFastify = kind === 'http' ? rawResponseOf(call) : req.raw
    return isFastify ? fastifyTrust(req) : expressTrust(req.app)
  },
  headersSent(call) {
    const { res } = call
    const rawResponse = rawResponseOf(call)
    return rawResponse ? Boolean(res.sent || rawResponse.headersSent) : Boolean(res?.headersSent)
  },
  setHeader(call, name, value) {
    const { kind, res } = call
    // A GraphQL server answers in its own format, even if one of several operations was denied.
    if (!res || (kind === 'graphql' && name === 'Content-Type')) return
    if (rawResponseOf(call)) res.header(name, value)
    // As a list of one: otherwise Nest 11 on Express replaces any type but application/json, and warns on each denial.
    else res.setHeader(name, IS_NEST_11 && name === 'Content-Type' ? [value] : value)
  },
  setStatus: ({ kind, res }, status) => void (kind === 'http' && res.status(status)),
  send: (_call, _res, problem) => problem,
  onFinished({ decisions }, call, listener) {
    const { req, res } = call
    // If another limit denied the call, its charges have already been given back.
    if (res)
      onResponseSent(req.raw ?? req, rawResponseOf(call) ?? res, () => decisions.length > 0 && listener())
  },
  // Limiters are made when the application starts.
  handlerFrame: /(?!)/,
}
