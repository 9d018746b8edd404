import type { ExecutionContext } from '@nestjs/common'
import { expressTrust, fastifyTrust, onResponseSent, type Platform } from '@sluice/core/http'
import { IS_NEST_11 } from './nest-version.js'
import type { Call } from './options.js'

/** Undefined in contexts that are not counted, such as those of microservices. */
export function callOf(context: ExecutionContext): Call | undefined {
  const kind = context.getType<string>()
  const [req, res, operation] = context.getArgs()
  if (kind === 'http') return { kind, req, res, context, decisions: [] }
  if (kind === 'ws') return { kind, req, res: undefined, context, decisions: [] }
  return kind === 'graphql' ? { kind, ...exchangeOf(operation), context, decisions: [] } : undefined
}

/** Servers differ in what they put into the context of an operation; graphql-ws has the request in `extra`, Mercurius beside its `reply`. */
function exchangeOf(operation: Call['req']): Pick<Call, 'req' | 'res'> {
  const { req: given, res, reply } = operation ?? {}
  const req = given?.extra?.request ?? given ?? operation?.request ?? {}
  // In a subscription, Mercurius gives a reply that has nothing but the request.
  return { req, res: res ?? (reply?.raw ? reply : req.res) }
}

/** Clients of `ws` know their socket, those of socket.io the request that opened the connection. */
function socketOf(req: Call['req']): Call['req'] {
  return req.socket ?? req._socket ?? req.request?.socket
}

/** Express and Fastify, which wraps Node's requests and responses as `raw`; and the clients of gateways. */
export const nest: Platform<Call, Call> = {
  // Never what lives as long as a connection, or all decisions about it would be kept.
  identity: ({ req, res, context }) => (res ? req : context),
  repeats: ({ kind }) => kind === 'graphql',
  decided: ({ decisions }, decision) => void decisions.push(decision),
  address: ({ req }) => req.ip,
  socketAddress: ({ req }) => socketOf(req)?.remoteAddress,
  hungUp: ({ req }) => Boolean(socketOf(req)?.destroyed),
  header: ({ req }, name) => (req.headers ?? req.request?.headers)?.[name]?.toString(),
  proxyTrust: ({ req }) => (req.raw ? fastifyTrust(req) : expressTrust(req.app)),
  headersSent: ({ res }) => Boolean(res?.sent || (res?.raw ?? res)?.headersSent),
  setHeader({ kind, res }, name, value) {
    // A GraphQL server answers in its own form, also where it was an operation of several that was denied.
    if (!res || (kind === 'graphql' && name === 'Content-Type')) return
    if (res.raw) res.header(name, value)
    // As a list of one: Nest 11 on Express would replace any text but application/json, with a warning for each denial.
    else res.setHeader(name, IS_NEST_11 && name === 'Content-Type' ? [value] : value)
  },
  setStatus: ({ kind, res }, status) => void (kind === 'http' && res.status(status)),
  send: (_call, _res, problem) => problem,
  onFinished({ decisions }, { req, res }, listener) {
    // What a refusal by another limit has given back cannot be given back again.
    if (res) onResponseSent(req.raw ?? req, res.raw ?? res, () => decisions.length > 0 && listener())
  },
  // Limiters are made when the application starts.
  handlerFrame: /(?!)/,
}
