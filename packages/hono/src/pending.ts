import { type KeptHeaders, onAborted, onConnectionLost, onResponseSent } from '@sluice/http'
import { rememberedHeaders, responseEnded, whenRead, withKept } from '@sluice/http'
import type { Context } from 'hono'
import type { IncomingMessage, ServerResponse } from 'node:http'

/** The listeners to call when the response has ended, with whether it has been sent. */
const LISTENERS = Symbol('listeners')

const KEPT = Symbol('kept')

/** On the context itself: a property costs less than a WeakMap. */
type WithPending = Context & {
  [LISTENERS]?: ((isSent: boolean) => void)[] | undefined
  [KEPT]?: KeptHeaders
}

/** Has `complete` put the kept headers into the response. */
export function atHead(c: WithPending, kept: KeptHeaders): true {
  c[KEPT] = kept
  return true
}

/**
 * Calls `listener` once the whole response has been sent; never if the caller hung up before. On Node the server's own
 * response says so; elsewhere the listener is kept on the context until `complete` puts it behind the body of the
 * response.
 */
export function onSent(c: WithPending, listener: () => void): void {
  const { incoming, outgoing } = bindingsOf(c)
  if (incoming && outgoing) onResponseSent(incoming, outgoing, listener)
  else (c[LISTENERS] ??= []).push((isSent) => isSent && listener())
}

/**
 * Calls `listener` if the caller hangs up before the response has been sent: on Node when its connection is lost,
 * elsewhere when the request's signal is aborted. Returns a function that stops listening.
 */
export function onGone(c: Context, listener: () => void): () => void {
  const { outgoing } = bindingsOf(c)
  return outgoing ? onConnectionLost(outgoing, listener) : onAborted(c.req.raw, listener)
}

/** Resolves when the response has ended: it has been sent, or its caller has hung up before. */
export function ended(c: WithPending): Promise<void> {
  const { outgoing } = bindingsOf(c)
  if (outgoing) return responseEnded(outgoing)
  return new Promise((end) => {
    ;(c[LISTENERS] ??= []).push(() => end())
    onAborted(c.req.raw, end)
  })
}

/** Listeners that wait for the end of a response. */
export type EndListeners = WithPending[typeof LISTENERS]

/** The listeners that limiters have left on the context so far; undefined if there are none. */
export function listenersOn(c: WithPending): EndListeners {
  return c[LISTENERS]
}

/**
 * Takes from the context the listeners of a limiter that ends, and of those within it; undefined if there are none. Where a limiter
 * around it has left some (`around`), these wait with them: what comes between may still replace the response.
 */
function take(c: WithPending, around: EndListeners): EndListeners {
  const listeners = c[LISTENERS]
  if (listeners === around) return undefined
  c[LISTENERS] = undefined
  return listeners
}

/**
 * Calls what waits for the end of a response that `complete` does not send, because the application failed. `around`: the
 * listeners before the limiter began.
 */
export function abandon(c: WithPending, around: EndListeners): void {
  take(c, around)?.forEach((listener) => listener(false))
}

/** `c.env`: in @hono/node-server the request and the response of Node, on Bun the parts of its server. */
interface Bindings {
  readonly incoming?: IncomingMessage
  readonly outgoing?: ServerResponse
  readonly port?: number
  requestIP?(request: Request): object | null
}

/**
 * The object that the server has passed to Hono as `env`, in which the caller's connection and address are found. On Node it has
 * the server's request and response. On Bun it is the server, or has it as `server`, which is then returned. {} without one.
 */
export function bindingsOf(c: Context): Bindings {
  const env = c.env as (Bindings & { readonly server?: Bindings }) | undefined
  return env?.server ?? env ?? {}
}

/**
 * Finishes the response of a handler, or the answer to a denial, with the headers of limits. Listeners that `onSent` and
 * `ended` kept are called as `whenRead` says. Where the handler has not responded (`finalized` is false), or its response
 * comes after another that is being sent, as that of a timeout, only what waits for the end is called. `around`: the listeners
 * before the limiter began.
 */
export function complete(c: WithPending, around: EndListeners): void {
  const listeners = take(c, around)
  const call = (isSent: boolean): void => listeners?.forEach((listener) => listener(isSent))
  // The body is looked at only where something waits for it, as the server for Node makes one when it is.
  if (!c.finalized || (listeners && (c.res.bodyUsed || c.res.body?.locked))) return call(false)
  keepHeaders(c)
  replace(c, withKept(c.res, c[KEPT]))
  if (listeners) replace(c, whenRead(c.req.raw, c.res, call))
}

/** Puts `response` in place of the one that the context has, if it is another. */
function replace(c: Context, response: Response): void {
  if (response === c.res) return
  c.res = undefined // Hono would copy the response, and add the headers of the one that is replaced.
  c.res = response
}

/**
 * Sets the limit's headers again if they are missing, as Hono omits them where a handler returns a Response of its own.
 * `rememberedHeaders` is a list of them, the latest first, whose `earlier` leads to the one before. If the latest of them
 * is on the response, all are.
 */
function keepHeaders(c: Context): void {
  let set = rememberedHeaders(c)
  if (!set || c.res.headers.get(set.name) === set.value) return
  for (; set; set = set.earlier) if (!c.res.headers.has(set.name)) c.header(set.name, set.value)
}
