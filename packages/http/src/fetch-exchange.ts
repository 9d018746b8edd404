import { makesRoom } from './node-platform.js'
import type { KeptHeaders } from './platform.js'

/*
 * Responses of the Fetch standard, for frameworks that have nothing else: headers that a handler's own response lacks, the
 * moment at which the runtime has read the last of a body, and callers that hang up.
 */

/** Whether a value is a response, of whichever realm or implementation. */
export function isResponse(value: unknown): value is Response {
  const { headers, status } = (value ?? {}) as Partial<Response>
  return typeof headers?.get === 'function' && typeof status === 'number'
}

/**
 * The response to a denied request: what `onDenied` has returned, or where that is only a body, a text or an object as JSON, a
 * response with it and the status and headers of `head`.
 */
export function responseOf(answer: unknown, head: ResponseInit): Response {
  if (isResponse(answer)) return answer
  if (typeof answer === 'object' && answer !== null) return Response.json(answer, head)
  return new Response(answer as string | null | undefined, head)
}

/**
 * Has `change` change the headers of a response. Returns the response, or a copy of it if its own headers cannot be changed,
 * as those of a response of `fetch` or `Response.redirect`. One that begins a WebSocket (101) or is a network error (0) is
 * returned as it is: a server may know it by identity, and has no copies of it. So is what is no response, for the server to
 * refuse.
 */
function changed(response: Response, change: (headers: Headers) => void): Response {
  if (!isResponse(response) || response.status < 200) return response
  try {
    change(response.headers)
    return response
  } catch {
    const copy = new Response(response.body, response)
    change(copy.headers)
    return copy
  }
}

/** Adds to the answer to a denial the headers that it lacks. */
export function withMissing(response: Response, headers: Headers): Response {
  return changed(response, (own) => headers.forEach((value, name) => own.has(name) || own.set(name, value)))
}

/** Puts the kept headers into the response of a handler. */
export function withKept(response: Response, kept: KeptHeaders | undefined): Response {
  if (!kept?.size) return response
  return changed(response, (own) => {
    if (!makesRoom(response.status, [...own.keys()], (name) => own.delete(name))) return
    kept.forEach((value, name) => own.set(name, value))
  })
}

/**
 * Returns a response like this one, and calls `ended`: with true when the runtime has read the last of the body, as the
 * Fetch standard has no event for a response that has been sent, and with false when the body fails or is cancelled, or the
 * caller has hung up by then. Without a body it is called at once. A body that another reader has taken cannot be
 * followed: `ended` gets false, and the response is returned as it is.
 */
export function whenRead(request: Request, response: Response, ended: (isSent: boolean) => void): Response {
  const { body } = response
  if (!body || request.method === 'HEAD' || body.locked) {
    ended(!body?.locked)
    return response
  }
  const flush = (): void => ended(!request.signal.aborted)
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>({ flush })
  body.pipeTo(writable).catch(() => ended(false))
  return new Response(readable, response)
}

/** Calls `listener` when the caller has hung up, at once where it has already. Returns a function that stops listening. */
export function onAborted({ signal }: Request, listener: () => void): () => void {
  if (signal.aborted) listener()
  signal.addEventListener('abort', listener)
  return () => signal.removeEventListener('abort', listener)
}
