import { makeRoom } from './node-platform.js'
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
 * Returns the response to a denied request, of the `answer` that `onDenied` has returned: itself if it is a response. Otherwise
 * it becomes the body, an object as JSON, and the status and the headers are those of `head`.
 */
export function responseOf(answer: unknown, head: ResponseInit): Response {
  if (isResponse(answer)) return answer
  if (typeof answer === 'object' && answer !== null) return Response.json(answer, head)
  return new Response(answer as string | null | undefined, head)
}

/**
 * Calls `change` with the headers of a response, and returns the response. It returns a changed copy if the headers themselves
 * cannot be changed, as those of a response of `fetch` or `Response.redirect`. A response that begins a WebSocket (status 101) or is
 * a network error (0) is returned unchanged: a server may know it by identity, and it cannot be copied. A value that is no
 * response is returned too, for the server to refuse.
 */
function withHeaders(response: Response, change: (headers: Headers) => void): Response {
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

/** Adds to a response those of `headers` that it lacks. */
export function withMissing(response: Response, headers: Headers): Response {
  return withHeaders(response, (own) =>
    headers.forEach((value, name) => own.has(name) || own.set(name, value)),
  )
}

/** Puts the headers that limits have kept for the response of a handler into it, unless it is itself a denial (`makeRoom`). */
export function withKept(response: Response, kept: KeptHeaders | undefined): Response {
  if (!kept?.size) return response
  return withHeaders(response, (own) => {
    if (!makeRoom(response.status, [...own.keys()], (name) => own.delete(name))) return
    kept.forEach((value, name) => own.set(name, value))
  })
}

/**
 * Returns a copy of a response, and calls `ended` once its body has ended: with true when the runtime has read the last of it,
 * as the Fetch standard has no event for a response that has been sent; with false if the body fails or is cancelled, or the
 * caller has hung up. Without a body to send, `ended` gets true at once, and the response itself is returned. So it is, with
 * false, if another reader has taken the body, which cannot be followed then.
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
