/*
 * Responses of the Fetch standard, for frameworks that have nothing else: headers that a handler's own response lacks, the
 * moment at which the runtime has read the last of a body, and callers that hang up.
 */

/**
 * Adds to a response the headers that it lacks, and leaves alone those that it has. Returns the response, or a copy of it
 * if its own headers cannot be changed, as those of a response of `fetch` or `Response.redirect`. One that begins a
 * WebSocket (101) or is a network error (0) is returned as it is: a server may know it by identity, and has no copies of it.
 */
export function withHeaders(response: Response, headers: Headers): Response {
  if (response.status < 200) return response
  const missing = [...headers].filter(([name]) => !response.headers.has(name))
  try {
    for (const [name, value] of missing) response.headers.set(name, value)
    return response
  } catch {
    const copy = new Response(response.body, response)
    for (const [name, value] of missing) copy.headers.set(name, value)
    return copy
  }
}

/**
 * Returns a response like this one that calls `listener` when the runtime has read the last of its body: the Fetch
 * standard has no event for a response that has been sent. Without a body it is called at once, otherwise not if the caller
 * has hung up by then.
 */
export function whenRead(request: Request, response: Response, listener: () => void): Response {
  if (!response.body || request.method === 'HEAD') {
    listener()
    return response
  }
  const flush = (): void => void (request.signal.aborted || listener())
  return new Response(response.body.pipeThrough(new TransformStream({ flush })), response)
}

/** Calls `listener` if the caller hangs up. Returns a function that stops listening. */
export function onAborted({ signal }: Request, listener: () => void): () => void {
  signal.addEventListener('abort', listener)
  return () => signal.removeEventListener('abort', listener)
}
