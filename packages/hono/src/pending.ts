import { onResponseSent } from '@sluice/core/http'
import type { Context } from 'hono'
import type { IncomingMessage, ServerResponse } from 'node:http'

/** What is left to do for a request when its response is there. */
interface Pending {
  readonly headers: Map<string, string>
  readonly onSent: (() => void)[]
}

/** What @hono/node-server gives as `c.env`. */
interface NodeBindings {
  readonly incoming: IncomingMessage
  readonly outgoing: ServerResponse
}

const PENDING = new WeakMap<Context, Pending>()

/** Sets a header of whatever response there will be. */
export function setHeader(c: Context, name: string, value: string): void {
  c.header(name, value)
  pendingOf(c).headers.set(name, value)
}

/** Calls `listener` once the whole response has been sent, and never when the caller hung up before. */
export function onSent(c: Context, listener: () => void): void {
  const { incoming, outgoing } = bindingsOf(c)
  if (incoming && outgoing) onResponseSent(incoming, outgoing, listener)
  else pendingOf(c).onSent.push(listener)
}

/** On Node the request and the response that Hono was called with. */
export function bindingsOf(c: Context): Partial<NodeBindings> {
  const env = c.env as Partial<NodeBindings & { server: NodeBindings }> | undefined
  return env?.server ?? env ?? {}
}

/** To be called when the handler has responded. */
export function complete(c: Context): void {
  const pending = PENDING.get(c)
  if (!pending || !c.finalized) return
  PENDING.delete(c)
  // Hono leaves them out where a handler returns a Response of its own making.
  for (const [name, value] of pending.headers) if (!c.res.headers.has(name)) c.header(name, value)
  if (pending.onSent.length > 0) c.res = watched(c, () => pending.onSent.forEach((listener) => listener()))
}

/** The response, which calls `listener` when the runtime has taken the last of its body. */
function watched({ req, res }: Context, listener: () => void): Response {
  if (!res.body || req.method === 'HEAD') {
    listener()
    return res
  }
  const flush = (): void => void (req.raw.signal.aborted || listener())
  return new Response(res.body.pipeThrough(new TransformStream({ flush })), res)
}

function pendingOf(c: Context): Pending {
  let pending = PENDING.get(c)
  if (!pending) PENDING.set(c, (pending = { headers: new Map(), onSent: [] }))
  return pending
}
