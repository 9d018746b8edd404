import { type KeptHeaders, onAborted, onConnectionLost, onResponseSent } from '@sluice/http'
import { rememberedHeaders, responseEnded, whenAborted, whenRead, withKept } from '@sluice/http'
import type { Context } from 'hono'
import type { IncomingMessage, ServerResponse } from 'node:http'

/** The listeners to call when the response has been sent. */
const LISTENERS = Symbol('listeners')

const KEPT = Symbol('kept')

/** On the context itself: a property costs less than a WeakMap. */
type WithPending = Context & { [LISTENERS]?: (() => void)[] | undefined; [KEPT]?: KeptHeaders }

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
  else (c[LISTENERS] ??= []).push(listener)
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
export function ended(c: Context): Promise<void> {
  const { outgoing } = bindingsOf(c)
  if (outgoing) return responseEnded(outgoing)
  return new Promise((end) => {
    onSent(c, end)
    whenAborted(c.req.raw, end)
  })
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
 * Finishes the response of a handler, or the answer to a denial, with the headers of limits. It also has the listeners that `onSent` kept called when the response's body has been read,
 * or at once if it has none. It does nothing if the handler has not responded (`finalized` is false).
 */
export function complete(c: WithPending): void {
  if (!c.finalized) return
  keepHeaders(c)
  const response = withKept(c.res, c[KEPT])
  if (response !== c.res) {
    c.res = undefined // Hono would add the headers of the response that is replaced.
    c.res = response
  }
  const listeners = c[LISTENERS]
  if (!listeners) return
  c[LISTENERS] = undefined
  c.res = whenRead(c.req.raw, c.res, () => listeners.forEach((listener) => listener()))
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
