import type { Decision } from '../limiter/decision.js'
import type { Problem } from './problem.js'

/** How an adapter reads the requests of its framework. */
export interface RequestReader<Req> {
  /** The caller's address as the framework sees it, proxies taken into account. */
  address(req: Req): string | undefined
  /** The address at the other end of the socket. */
  socketAddress(req: Req): string | undefined
  /** Whether the connection that the request came on is gone. Default: never. */
  hungUp?(req: Req): boolean
  /** The value of a request header; `name` is in lower case. */
  header(req: Req, name: string): string | undefined
  /** Whose X-Forwarded-For the framework believes: nobody's, that of some proxies, or everybody's. */
  proxyTrust(req: Req): 'none' | 'some' | 'all'
}

/** Sets a header of one response. */
export type SetHeader = (name: string, value: string) => void

/** All that an adapter has to supply. */
export interface Platform<Req, Res> extends RequestReader<Req> {
  /** The object that stays the same while a request passes through every middleware. */
  identity(req: Req): object
  /** Whether one limiter may well count a request several times, as each operation of a GraphQL request. Default no. */
  repeats?(req: Req): boolean
  /** Told of each decision about a request, before it is acted on. */
  decided?(req: Req, decision: Decision): void
  headersSent(res: Res): boolean
  setHeader(res: Res, name: string, value: string): void
  setStatus(res: Res, status: number): void
  /** Answers with `problem` as JSON; status and headers are set. What it returns is handed back to the adapter. */
  send(req: Req, res: Res, problem: Problem): unknown
  /** Calls `listener` once the whole response has been sent, and never when the caller hung up before. */
  onFinished(req: Req, res: Res, listener: () => void): void
  /** Matches a stack in which the framework is calling a handler. */
  readonly handlerFrame: RegExp
}
