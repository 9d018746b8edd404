import { onResponseSent } from '@sluice/core/http'
import type { Context } from 'hono'
import type { IncomingMessage, ServerResponse } from 'node:http'

/** The work left for a request until its response exists. */
interface Pending {
  readonly headers: Record<string, string>
  readonly onSent: (() => void)[]
}

/** `c.env` in @hono/node-server. */
interface NodeBindings {
  readonly incoming: IncomingMessage
  readonly outgoing: ServerResponse
}

/** On the context itself: a property costs less than a WeakMap. */
const PENDING = Symbol('pending')

type WithPending = Context & { [PENDING]?: Pending | undefined }

/** Sets a header of the response, which may not exist yet. */
export function setHeader(c: Context, name: string, value: string): void {
  c.header(name, value)
  pendingOf(c).headers[name] = value
}

/** Calls `listener` once the whole response has been sent; never if the caller hung up before. */
export function onSent(c: Context, listener: () => void): void {
  const { incoming, outgoing } = bindingsOf(c)
  if (incoming && outgoing) onResponseSent(incoming, outgoing, listener)
  else pendingOf(c).onSent.push(listener)
}

/** On Node, the request and the response that Hono was called with. */
export function bindingsOf(c: Context): Partial<NodeBindings> {
  const env = c.env as Partial<NodeBindings & { server: NodeBindings }> | undefined
  return env?.server ?? env ?? {}
}

/** Adds the headers and the listeners to the response. To be called once the handler has responded. */
export function complete(c: WithPending): void {
  const pending = c[PENDING]
  if (!pending || !c.finalized) return
  c[PENDING] = undefined
  // Hono omits them if the handler returns a Response that it made itself.
  const { headers } = c.res
  for (const name in pending.headers) if (!headers.has(name)) c.header(name, pending.headers[name])
  if (pending.onSent.length > 0) c.res = watched(c, () => pending.onSent.forEach((listener) => listener()))
}

/** The same response, which calls `listener` when the runtime has read the last of its body. */
function watched({ req, res }: Context, listener: () => void): Response {
  if (!res.body || req.method === 'HEAD') {
    listener()
    return res
  }
  const flush = (): void => void (req.raw.signal.aborted || listener())
  return new Response(res.body.pipeThrough(new TransformStream({ flush })), res)
}

function pendingOf(c: WithPending): Pending {
  return (c[PENDING] ??= { headers: {}, onSent: [] })
}
