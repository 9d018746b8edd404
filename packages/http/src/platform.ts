import type { Decision } from '@sluice/core'
import { isPromise } from '@sluice/core/internal'
import type { MaybePromise } from '@sluice/core/store'

/** The headers of limits that a response gets with its head, by their names. */
export type KeptHeaders = Map<string, string>

/** How an adapter reads the requests of its framework. */
export interface RequestReader<Req> {
  /** The caller's address according to the framework, with trusted proxies taken into account. */
  address(req: Req): string | undefined
  /** The address at the other end of the socket. */
  socketAddress(req: Req): string | undefined
  /**
   * Whether the caller of a request without an address has hung up; false unless that is proven. Asked about no other
   * request. Default: never.
   */
  hungUp?(req: Req): boolean
  /** The method of a request, such as 'GET'. */
  method(req: Req): string | undefined
  /** The target of a request as the caller wrote it, whatever routers have cut off: a path with its query, or a whole URL. */
  url(req: Req): string | undefined
  /** The value of a request header; `name` is in lower case. */
  header(req: Req, name: string): string | undefined
  /**
   * Names and values of the request's headers as Node received them, which it has without parsing; undefined on other
   * platforms, where `header` is asked.
   */
  rawHeaders?(req: Req): readonly string[] | undefined
  /** Whether the framework trusts every proxy to set X-Forwarded-For, so that callers choose their own address. Default: no. */
  trustsAll?(req: Req): boolean
}

/** Where the decisions about a request are kept: on it as a property, or beside it in a map. */
type KeepDecisions = 'on' | 'beside'

/** Sets a header of a response. */
export type SetHeader<Res> = (res: Res, name: string, value: string) => void

/** Problem details (RFC 9457), of the types that draft-ietf-httpapi-ratelimit-headers-11 section 5 defines. */
export type Problem = Readonly<Record<string, unknown>>

/** Everything that an adapter has to supply. */
export interface Platform<Req, Res> extends RequestReader<Req> {
  /** The object that stays the same while a request passes through every middleware. */
  identity(req: Req): object
  /** Where decisions about a request are kept. Default: on the request. */
  readonly keepDecisions?: (req: Req) => KeepDecisions
  /** Whether one limiter may count a request several times, for what it does more than once. Default: no. */
  repeats?(req: Req): boolean
  /** Called with each decision about a request, before the decision takes effect. */
  decided?(req: Req, decision: Decision): void
  headersSent(res: Res): boolean
  readonly setHeader: SetHeader<Res>
  /**
   * Has the response to an admitted request get the `kept` headers with its head; called before any are kept. False, the
   * default, if it cannot: they are set at once.
   */
  atHead?(res: Res, kept: KeptHeaders): boolean
  setStatus(res: Res, status: number): void
  /** Answers with `text`, which is `problem` as JSON; status and headers are set. The guard returns its result to the adapter. */
  send(req: Req, res: Res, problem: Problem, text: string): unknown
  /** Sends the body that `onDenied` has returned. Default: the adapter gets it, as the guard's result. */
  sendResult?(res: Res, body: unknown): void
  /** Whether callbacks answer by themselves, some later, so that one may leave the caller without an answer. Default: no. */
  readonly answersLate?: boolean
  /** Calls `listener` once the whole response has been sent; never if the caller hung up before. */
  onFinished(req: Req, res: Res, listener: () => void): void
  /**
   * Calls `listener` if the caller hangs up before the whole response has been sent, at once where he has. Returns a function
   * that stops listening.
   * Default: a caller that hangs up while it waits for its turn keeps its place.
   */
  onHungUp?(req: Req, res: Res, listener: () => void): () => void
  /**
   * Resolves when the response has ended: it has been sent, or its caller has hung up. Limits that hold permits until then
   * require it.
   * @throws {PolicyError} INVALID_OPTION for a call that has no response.
   */
  ended?(req: Req, res: Res): Promise<void>
  /** The setting by which the framework trusts its proxies, as it is written. */
  readonly proxySetting: string
  /** Matches a stack trace in which the framework is calling a handler. */
  readonly handlerFrame: RegExp
}

/** The path of a request's target, without its query and without the host of a whole URL. */
export function pathOf(url: string): string {
  return url.replace(/^\w+:\/\/[^/]*/, '').split('?', 1)[0]!
}

/**
 * Resolves once the whole response has been sent. A reaction to it runs in the AsyncLocalStorage context of the request; the end of
 * a response may come in another.
 */
export function whenSent<Req, Res>(platform: Platform<Req, Res>, req: Req, res: Res): Promise<void> {
  return new Promise((sent) => platform.onFinished(req, res, sent))
}

/**
 * Passes the value to `step`: in the same tick if it is available, otherwise when its promise resolves. A request that
 * waits for nothing is thus passed on in the same tick, which a plain `await` would not do.
 */
export function chain<T, R>(value: MaybePromise<T>, step: (value: T) => MaybePromise<R>): MaybePromise<R> {
  return isPromise(value) ? Promise.resolve(value).then(step) : step(value)
}
