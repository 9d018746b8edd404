import type { Server } from 'node:http'
import type { GuardOptions } from '../../../src/http/index.js'

/*
 * What an adapter supplies to be tested by `adapterKit` (kit.ts). The kit says what an application does, without a
 * word of any framework; `serve` builds that application with the framework and the adapter, and listens. Callbacks
 * in the options get the framework's own requests and responses, which the kit reads through the readers here.
 *
 * A package has a test/kit*.test.ts for it, and includes packages/core/test/http/adapters in its test/tsconfig.json
 * (see packages/express/test). `listening` (listening.ts) makes what `serve` gives of a server of Node.
 */

export interface Adapter<Req, Res> {
  /** The column in the table of all adapters: 'Express', 'Nest on Fastify'. */
  readonly name: string

  /** Builds the application and listens on a free port of 127.0.0.1. */
  serve(app: App<Req, Res>): Promise<Served>

  /** What the options' callbacks read of a request; `name` is in lower case. */
  header(req: Req, name: string): string | undefined
  /** In upper case. */
  method(req: Req): string
  /** What `shouldCharge` reads of a response that was sent. */
  status(res: Res): number
  /** Does, and gives back, what an `onDenied` has to so that a denial is answered with `text`. */
  answerDenial(req: Req, res: Res, text: string): unknown

  /** What the framework has no means for, and why: a few words. Those cases are listed as 'n/a' with the reason. */
  readonly lacks?: Readonly<Partial<Record<Feature, string>>>
}

/** One kind of `proxyTrust` each. */
export type Feature = 'trusting all proxies' | 'trusting a number of proxies' | 'trusting proxies by address'

export interface App<Req, Res> {
  readonly routes: readonly Route<Req, Res>[]
  /**
   * Whose X-Forwarded-For the framework is told to believe: nobody's (leave the setting at its default), everybody's,
   * that of the last n proxies, or that of proxies at these addresses and networks (CIDR).
   */
  readonly proxyTrust: 'none' | 'all' | number | readonly string[]
  /** What the application waits for on each request ahead of the limits: a session, for example. */
  before?(): Promise<void>
  /**
   * To be called with whatever reaches the framework's own path for errors (Express: an error handler, Koa: the
   * event 'error', Nest: an exception filter), which then answers 500.
   */
  onError(error: unknown): void
}

/** Answers GET, HEAD, POST and OPTIONS. Bodies of POST are left to the framework. */
export interface Route<Req, Res> {
  /** '/', '/login': one literal segment or none. */
  readonly path: string
  /** One limiter each, mounted on this route as users of the adapter would, in the order in which they are to count. */
  readonly limits: readonly GuardOptions<Req, Res>[]
  /** The handler. What it throws or rejects with is an error of the handler, and the framework's to deal with. */
  answer(): Answer | Promise<Answer>
}

export interface Answer {
  /** Default 200. */
  readonly status?: number
  /** Sent as text/plain: whole, or streamed chunk by chunk as they come. What the iterator throws breaks the response off. */
  readonly body: string | AsyncIterable<string>
}

export interface Served {
  /** Where the kit finds the port, and sees connections and responses close. */
  readonly server: Server
  /** Resolves when nothing listens any more. Open connections are cut: the kit leaves some. */
  close(): Promise<void>
}
