import { type HeaderList, headersIn, lowerCase, onResponseSent } from '@sluice/http'
import type { Context } from 'hono'
import type { IncomingMessage, ServerResponse } from 'node:http'

/** The headers that limiters have set on the response, which may not exist yet. */
const HEADERS = Symbol('headers of the limiters')
/** The listeners to call when the response has been sent. */
const LISTENERS = Symbol('listeners of the limiters')

/** On the context itself: a property costs less than a WeakMap. */
type WithPending = Context & { [HEADERS]?: HeaderList | undefined; [LISTENERS]?: (() => void)[] | undefined }

/** Sets a header of the response, which may not exist yet. In lower case, as `Headers` keep names. */
export function setHeader(c: WithPending, header: string, value: string): void {
  const name = lowerCase(header)
  c.header(name, value)
  c[HEADERS] = { name, value, earlier: c[HEADERS] }
}

/** Calls `listener` once the whole response has been sent; never if the caller hung up before. */
export function onSent(c: WithPending, listener: () => void): void {
  const { incoming, outgoing } = bindingsOf(c)
  if (incoming && outgoing) onResponseSent(incoming, outgoing, listener)
  else (c[LISTENERS] ??= []).push(listener)
}

/** `c.env`: in @hono/node-server the request and the response of Node, on Bun the parts of its server. */
interface Bindings {
  readonly incoming?: IncomingMessage
  readonly outgoing?: ServerResponse
  readonly port?: number
  requestIP?(request: Request): object | null
}

/** On Node, the request and the response that Hono was called with; on Bun the server. */
export function bindingsOf(c: Context): Bindings {
  const env = c.env as (Bindings & { readonly server?: Bindings }) | undefined
  return env?.server ?? env ?? {}
}

/** Adds the headers and the listeners to the response. To be called once the handler has responded. */
export function complete(c: WithPending): void {
  if (!c.finalized) return
  if (c[HEADERS]) keepHeaders(c, c[HEADERS])
  const listeners = c[LISTENERS]
  if (!listeners) return
  c[LISTENERS] = undefined
  c.res = watched(c, () => listeners.forEach((listener) => listener()))
}

/** Hono omits headers if a handler returns a Response of its own. Where the latest is there, all of them are. */
function keepHeaders(c: WithPending, headers: HeaderList): void {
  c[HEADERS] = undefined
  if (c.res.headers.get(headers.name) === headers.value) return
  for (const [name, value] of Object.entries(headersIn(headers)))
    if (!c.res.headers.has(name)) c.header(name, value)
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
