import { type CanActivate, type ExecutionContext, Inject, Injectable } from '@nestjs/common'
import { HttpException, HttpStatus } from '@nestjs/common'
import type { Decision } from '@sluice/core'
import type { Denied } from '@sluice/core/http'
import { type Limit, Limits } from './limits.js'
import { IS_NEST_11 } from './nest-version.js'
import type { Call } from './options.js'
import { callOf } from './platform.js'

/**
 * Counts each run of a handler under the limits that hold for it. Where one refuses, the others get back what they
 * charged, and the exception filters a RateLimitException (WsException in gateways). Global, local or both: a run is
 * counted once.
 */
@Injectable()
export class RateLimitGuard implements CanActivate {
  constructor(@Inject(Limits) private readonly limits: Limits) {}

  canActivate(context: ExecutionContext & { [COUNTED]?: boolean }): boolean | Promise<boolean> {
    if (context[COUNTED]) return true
    context[COUNTED] = true
    const call = callOf(context)
    const limits = call ? this.limits.of(call) : []
    // Where nothing has to be waited for the handler runs at once.
    for (let i = 0; i < limits.length; i++) {
      const denied = attempt(limits[i]!, call!)
      if (denied) return goOn(call!, denied, limits, i + 1)
    }
    return true
  }
}

/** Nest gives the guards of one run the same context. A property costs less than a WeakSet. */
const COUNTED = Symbol.for('sluice.nest.counted')

type Answer = ReturnType<Limit>

function attempt(limit: Limit, call: Call): Answer {
  try {
    return limit(call, call)
  } catch (error) {
    return Promise.reject(error)
  }
}

/** Hears what a limit says in its own time, and then the others. */
async function goOn(call: Call, first: Answer, limits: readonly Limit[], next: number): Promise<boolean> {
  try {
    // 12,000 operations of GraphQL that one denial decides: each await that is not needed would count.
    let denied = first instanceof Promise ? await first : first
    for (let i = next; !denied && i < limits.length; i++) denied = await limits[i]!(call, call)
    if (denied) throw call.kind === 'ws' ? await wsExceptionOf(denied, call) : exceptionOf(denied, call)
    return true
  } catch (error) {
    const charged = call.decisions.splice(0).filter(({ allowed }) => allowed)
    if (charged.length > 0)
      await Promise.allSettled(charged.map((decision) => giveBack(call, decision, limits)))
    throw error
  }
}

/** What a limit charged for a run that another one refused; what it reports then is what is left without the charge. */
async function giveBack(call: Call, decision: Decision, limits: readonly Limit[]): Promise<void> {
  await limits.find(({ limiter }) => limiter.name === decision.limiter)?.giveBack(call, call, decision)
}

/**
 * A denial on its way to the exception filters: 429, or 503 where nobody could decide. Headers are set by then;
 * `getResponse()` is the problem details, or what `onDenied` gave.
 */
export class RateLimitException extends HttpException {
  constructor(
    body: string | object,
    readonly decision: Decision,
  ) {
    super(body, decision.degraded !== undefined && decision.reason === undefined ? 503 : 429)
    if (typeof body === 'object' && 'detail' in body) this.message = String(body.detail)
  }

  /** What GraphQL servers send beside the message. In JSON a `retryAfterMs` without end is null. */
  get extensions(): Readonly<Record<string, unknown>> {
    const { retryAfterMs } = this.decision
    return { code: HttpStatus[this.getStatus()], retryAfterMs, problem: this.getResponse() }
  }
}

/** What a call is refused with: what `onDenied` made, or an exception of ours. */
function exceptionOf(denied: Denied, { decisions }: Call): Error {
  if (denied.answer instanceof Error) return denied.answer
  if (denied.hungUp) return new HttpException('Client Closed Request', 499)
  const body = denied.answer ?? 'Too Many Requests'
  const exception = EXCEPTIONS.get(denied) ?? new RateLimitException(body, decisions.at(-1)!)
  EXCEPTIONS.set(denied, exception)
  return exception
}

/** Operations of GraphQL that one denial decides share one, as its stack costs more than the rest of the guard. */
const EXCEPTIONS = new WeakMap<Denied, RateLimitException>()

/** The same as the filters of gateways know it. */
async function wsExceptionOf(denied: Denied, call: Call): Promise<Error> {
  const exception = exceptionOf(denied, call)
  if (denied.answer instanceof Error) return exception
  // Only gateways need the package, and they have it.
  const { WsException } = await import('@nestjs/websockets')
  const extensions = exception instanceof RateLimitException ? exception.extensions : {}
  const error = { status: 'error', message: exception.message, ...extensions }
  if (IS_NEST_11 && call.req._socket) answerOnNest11(call.req, error)
  return Object.assign(new WsException(error), { cause: exception })
}

/**
 * The filters of Nest 11 emit an exception on the client, which with socket.io sends it, and with `ws` does nothing. One
 * listener a client, as an application's own filters may emit nothing.
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
