import type { Server } from 'node:http'
import type { RequestLimitOptions } from '@sluice/http'

/*
 * The parts that an adapter supplies to be tested by `adapterKit` (kit.ts). The kit describes an application independently of any
 * framework; `serve` builds it with the framework and the adapter, and listens. Callbacks in the options get the framework's
 * own requests and responses, which the kit reads through the functions here.
 *
 * A package calls the kit in test/kit*.test.ts. `listening` (listening.ts) makes the result of `serve` from a Node server.
 */

export interface Adapter<Req, Res> {
  /** The column in the table of all adapters: 'Express', 'Nest on Fastify'. */
  readonly name: string

  /** Builds the application and listens on a free port of 127.0.0.1. */
  serve(app: App<Req, Res>): Promise<Served>

  /** Reads a header of a request in callbacks; `name` is in lower case. */
  header(req: Req, name: string): string | undefined
  /** In upper case. */
  method(req: Req): string
  /** The status of a response that was sent, for `shouldCharge`. */
  status(res: Res): number
  /** Does and returns what an `onDenied` must to answer a denial with `text`. */
  answerDenial(req: Req, res: Res, text: string): unknown

  /** Features that the framework lacks, each with the reason in a few words. Their cases are listed as 'n/a'. */
  readonly lacks?: Readonly<Partial<Record<Feature, string>>>
}

/** One kind of `proxyTrust` each, a protocol, and what fetch handlers do not see. */
export type Feature =
  | 'trusting all proxies'
  | 'trusting a number of proxies'
  | 'trusting proxies by address'
  | 'HTTP/2'
  | 'responses to errors'
  | 'ends of large responses'
  | 'connections without an address'
  | 'addresses of connections'
  | 'hang-ups of pipelined requests'

export interface App<Req, Res> {
  readonly routes: readonly Route<Req, Res>[]
  /**
   * Which proxies the framework is set to trust: none (its default setting), all, the last n, or those at these addresses and
   * networks (CIDR).
   */
  readonly proxyTrust: 'none' | 'all' | number | readonly string[]
  /** Awaited by the application on each request before the limits, for example to load a session. */
  before?(): Promise<void>
  /**
   * To be called with every error that reaches the framework's error handling (Express: an error handler, Koa: the event
   * 'error', Nest: an exception filter), which then answers 500.
   */
  onError(error: unknown): void
}

/** Answers GET, HEAD, POST and OPTIONS. Bodies of POST are left to the framework. */
export interface Route<Req, Res> {
  /** '/', '/login': one literal segment or none. */
  readonly path: string
  /** One limiter each, mounted on this route as users would, in the order in which they count. */
  readonly limits: readonly RequestLimitOptions<Req, Res>[]
  /** The handler. What it throws or rejects with is left to the framework. */
  answer(): Answer | Promise<Answer>
}

export interface Answer {
  /** Default 200. */
  readonly status?: number
  /** Passed on as a gateway does those of an upstream. */
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as text/plain: whole, or streamed chunk by chunk. An error of the iterator breaks the response off. */
  readonly body: string | AsyncIterable<string>
}

export interface Served {
  /** For the port, and for connections and responses that close. */
  readonly server: Server
  /** Resolves when nothing listens any more. Open connections are cut: the kit leaves some. */
  close(): Promise<void>
}
