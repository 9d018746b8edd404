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

/** Leaves the kept headers on the context, from where `complete` puts them into the response. */
export function atHead(c: WithPending, kept: KeptHeaders): true {
  c[KEPT] = kept
  return true
}

/**
 * Calls `listener` once the whole response has been sent; never if the caller hung up before. On Node the server's own
 * response says so. Elsewhere the listener is left on the context, and `complete` has it called when the body has been read.
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
 * Takes the listeners off the context and returns them, when a limiter ends. It takes none and returns undefined if there were
 * listeners when that limiter began (`around`): all of them wait for the limiter around it that left these, as what
 * comes between the two may still replace the response.
 */
function takeListeners(c: WithPending, around: EndListeners): EndListeners {
  const listeners = c[LISTENERS]
  if (listeners === around) return undefined
  c[LISTENERS] = undefined
  return listeners
}

/** Ends, in place of `complete`, a call in which the application failed: the listeners learn that no response was sent. */
export function abandon(c: WithPending, around: EndListeners): void {
  takeListeners(c, around)?.forEach((listener) => listener(false))
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
 * Finishes the response of a handler, or the answer to a denial: adds the headers of limits, and has the listeners called when
 * its body has been read (`whenRead`). They are called at once, and told that nothing was sent, if the handler has not
 * responded (`finalized` is false), or its body is being sent already, as after a timeout. `listenersBefore` were on the context
 * when the limiter began, and stay there.
 */
export function complete(c: WithPending, listenersBefore: EndListeners): void {
  const listeners = takeListeners(c, listenersBefore)
  const callListeners = (isSent: boolean): void => listeners?.forEach((listener) => listener(isSent))
  // Only with listeners, as the server for Node makes a body when it is looked at.
  const isBeingSent = listeners && (c.res.bodyUsed || c.res.body?.locked)
  if (!c.finalized || isBeingSent) return callListeners(false)
  restoreHeaders(c)
  replace(c, withKept(c.res, c[KEPT]))
  if (listeners) replace(c, whenRead(c.req.raw, c.res, callListeners))
}

/** Puts `response` in place of the one that the context has, if it is another. */
function replace(c: Context, response: Response): void {
  if (response === c.res) return
  c.res = undefined // Hono would copy the response, and add the headers of the one that is replaced.
  c.res = response
}

/**
 * Sets the headers of limits again if they are missing, as Hono drops them where a handler returns a Response of its own.
 * `rememberedHeaders` returns the latest header that was set, whose `earlier` is the one before. If the latest is on the
 * response, all are.
 */
function restoreHeaders(c: Context): void {
  const latest = rememberedHeaders(c)
  if (!latest || c.res.headers.get(latest.name) === latest.value) return
  for (let header: typeof latest | undefined = latest; header; header = header.earlier) {
    if (!c.res.headers.has(header.name)) c.header(header.name, header.value)
  }
}
