import { type CanActivate, type ExecutionContext, Inject, Injectable } from '@nestjs/common'
import { ForbiddenException, HttpException, HttpStatus } from '@nestjs/common'
import type { Decision } from '@sluice/core'
import { closeUnread, type Denied } from '@sluice/http'
import { type CountCall, Limits } from './limits.js'
import { IS_NEST_11 } from './nest-version.js'
import type { Call } from './options.js'
import { callOf } from './platform.js'

/**
 * Counts each call of a handler under all limits that apply to it: under those that are independent one after the other, then
 * under the others in one decision, so that one that denies leaves them all uncharged. For a denied call it throws a
 * RateLimitException (a WsException in gateways). Whether global, local or both, it counts a call once.
 */
@Injectable()
export class RateLimitGuard implements CanActivate {
  constructor(@Inject(Limits) private readonly limits: Limits) {}

  /**
   * Counts the call under each limit that applies to its handler, and returns true if it may go on; a denied call ends in
   * an exception. Async only if a limit is, or if one denies: otherwise the handler runs in the same tick. A guard that
   * is registered globally and on the handler runs twice for a call, and counts it once.
   */
  canActivate(context: ExecutionContext & { [COUNTED]?: boolean }): boolean | Promise<boolean> {
    if (context[COUNTED]) return true
    context[COUNTED] = true
    const call = callOf(context)
    const limits = call ? this.limits.of(call) : []
    for (let i = 0; i < limits.length; i++) {
      const outcome = attempt(limits[i]!, call!)
      if (outcome) return askRest(call!, outcome, limits, i + 1, this.limits.maxBuffered)
    }
    return true
  }
}

/** Nest passes the same context to all guards of a call. A property costs less than a WeakSet. */
const COUNTED = Symbol.for('sluice.nest.counted')

type LimitAnswer = ReturnType<CountCall>

/**
 * Counts a call under a limit. Returns undefined if it may pass and otherwise the denial, or a promise of that. An error
 * becomes a rejected promise, so that `askRest` handles the errors of all limits in one way.
 */
function attempt(limit: CountCall, call: Call): LimitAnswer {
  try {
    return limit(call, call) // A guard takes a request and a response; a call is both.
  } catch (error) {
    return Promise.reject(error)
  }
}

/**
 * Goes on from the first limit that denied or is async: waits for its outcome `first`, and while none denies asks the
 * limits from `next` on. Resolves to true if none denies. Otherwise it throws the exception for the denial, in a gateway
 * as a WsException; there it first closes a connection for whose client more than `maxBuffered` bytes wait.
 */
async function askRest(
  call: Call,
  first: LimitAnswer & {},
  limits: readonly CountCall[],
  next: number,
  maxBuffered: number,
): Promise<boolean> {
  // One denial may decide 12,000 GraphQL operations, so an unnecessary await would be measurable.
  let denied = 'answer' in first ? first : await first
  for (let i = next; !denied && i < limits.length; i++) denied = await limits[i]!(call, call)
  if (!denied) return true
  if (call.kind !== 'ws') throw exceptionOf(denied, call)
  closeUnread(call.req, maxBuffered)
  throw await wsExceptionOf(denied, call)
}

/**
 * A denial as exception filters receive it: 429, or 503 if the store failed and `onStoreError` is 'deny'. Headers are set by
 * then. `getResponse()` is the problem details, or what `onDenied` returned.
 */
export class RateLimitException extends HttpException {
  /**
   * The exception of a denied call, with the status 429, or 503 where the store could not decide (`degraded`). `body` is the
   * response: problem details, whose `detail` becomes the message, or what `onDenied` returned.
   */
  constructor(
    body: string | object,
    readonly decision: Decision,
  ) {
    super(body, decision.reason === 'degraded' ? 503 : 429)
    if (typeof body === 'object' && 'detail' in body) this.message = String(body.detail)
  }

  /**
   * The code, the wait and the problem details of the denial, which GraphQL servers send beside the message. A
   * `retryAfterMs` of Infinity is null in JSON.
   */
  get extensions(): Readonly<Record<string, unknown>> {
    const { retryAfterMs } = this.decision
    return { code: HttpStatus[this.getStatus()], retryAfterMs, problem: this.getResponse() }
  }
}

/**
 * The exception for a denied call: the error that `onDenied` returned, 403 for a caller on the list `deny`, 499 for one
 * that has hung up, else a RateLimitException with the latest decision about the call. That exception is kept with the
 * denial, because one denial may decide thousands of GraphQL operations.
 */
function exceptionOf(denied: Denied & { [EXCEPTION]?: RateLimitException }, { decisions }: Call): Error {
  if (denied.answer instanceof Error) return denied.answer
  if (denied.forbidden) return forbidden(denied.answer as object)
  if (denied.hungUp) return new HttpException('Client Closed Request', 499)
  const body = denied.answer ?? 'Too Many Requests'
  return (denied[EXCEPTION] ??= new RateLimitException(body, decisions.at(-1)!))
}

/**
 * The exception for a caller on the list `deny`, with the status 403. `getResponse()` is the problem details, and
 * `extensions` is what GraphQL servers send beside the message.
 */
function forbidden(problem: object): HttpException {
  const exception = new ForbiddenException(problem)
  return Object.assign(exception, { message: 'Forbidden', extensions: { code: 'FORBIDDEN', problem } })
}

/** GraphQL operations decided by one denial share one exception, because its stack trace costs more than the rest. */
const EXCEPTION = Symbol('exception')

/**
 * The exception for a denied message of a gateway: a WsException, which gateways' filters expect, with the message and
 * the details of the exception that `exceptionOf` makes. An error that `onDenied` returned stays itself. On Nest 11, a
 * client of the package `ws` is answered too.
 */
async function wsExceptionOf(denied: Denied, call: Call): Promise<Error> {
  const exception = exceptionOf(denied, call)
  if (denied.answer instanceof Error) return exception
  const { WsException } = await (websockets ??= import('@nestjs/websockets'))
  const { extensions } = exception as { extensions?: object }
  const error = { status: 'error', message: exception.message, ...extensions }
  // With the package ws, whose clients have a `_socket`, the filters of Nest 11 send nothing by themselves.
  if (IS_NEST_11 && call.req._socket) answerOnNest11(call.req, error)
  return Object.assign(new WsException(error), { cause: exception })
}

/** Only gateways need this package, and applications with gateways have it. Imported once: in a flood, imports would queue. */
let websockets: Promise<typeof import('@nestjs/websockets')> | undefined

/**
 * Makes sure that `error`, a denial, reaches a client of the package `ws` on Nest 11. Nest's filters emit the event
 * 'exception' with it on the client: with socket.io that sends it, with `ws` it does nothing. So a listener for that event
 * sends the error, if it is one of the denials (ERRORS). Each client gets one listener for good: where a filter of the
 * application emits no event, one for each denial would pile up.
 */
function answerOnNest11(client: Call['req'], error: object): void {
  ERRORS.add(error)
  if (ANSWERED.has(client)) return
  ANSWERED.add(client)
  client.on('exception', (data: object) => {
    if (ERRORS.has(data)) client.send(JSON.stringify({ event: 'exception', data }))
  })
}

const ERRORS = new WeakSet<object>()
const ANSWERED = new WeakSet<object>()
