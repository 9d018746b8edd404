/**
 * A response like the given one, with `ended` called when its body has arrived, failed or was cancelled. Up to 64 KiB are read in
 * advance, so that a small body ends even if the caller never reads it. A larger body that is never read ends when it is
 * garbage-collected.
 */
export function untilEnd(response: Response, ended: () => void): Response {
  const { body } = response
  if (!body) {
    ended()
    return response
  }
  // Unregistered first: otherwise the registry would keep the permit until the response is collected.
  const end = (): void => {
    unread.unregister(ended)
    ended()
  }
  if (isNodeStream(body)) {
    unread.register(response, ended, ended)
    for (const event of ['finish', 'end', 'close', 'error']) body.once(event, end)
    // node-fetch buffers the body: it has arrived once it is in the buffer, whether it is read from there or not.
    if (body.writableFinished === true || body.destroyed === true) end()
    return response
  }
  const Same = response.constructor as typeof Response
  const whole = observed(body, end)
  const same = posingAs(response, new Same(whole, { headers: response.headers }))
  // Not the response: its body and its clones can be read without it.
  unread.register(whole, ended, ended)
  return same
}

/** The same stream, with `ended` called when it has ended, failed or was cancelled. */
export function observed<T extends Uint8Array>(
  stream: ReadableStream<T>,
  ended: () => void,
): ReadableStream<T> {
  // Locked at the first read, so that the stream can still be discarded if no response is made of this one.
  let reader: ReadableStreamDefaultReader<T> | undefined
  return new ReadableStream(
    {
      type: 'bytes',
      async pull(controller) {
        try {
          reader ??= stream.getReader()
          const { done, value } = await reader.read()
          if (!done) return controller.enqueue(ownBytes(value))
          controller.close()
          // A reader with a buffer of its own gets it back.
          controller.byobRequest?.respond(0)
        } catch (error) {
          controller.error(error)
        }
        ended()
      },
      cancel(reason) {
        ended()
        return (reader ?? stream).cancel(reason)
      },
    },
    { highWaterMark: READ_AHEAD },
  ) as ReadableStream<T>
}

/** The bytes in a buffer of their own, copied if they share one: a byte stream takes the buffer of what it is given away. */
function ownBytes(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const isOwn = bytes.byteLength === bytes.buffer.byteLength && bytes.buffer instanceof ArrayBuffer
  return isOwn ? (bytes as Uint8Array<ArrayBuffer>) : new Uint8Array(bytes)
}

/** Cancels a body that is not read, of any client. */
export function discard(body: unknown): void {
  const stream = body as { cancel?: () => Promise<void>; destroy?: () => void } | null | undefined
  if (typeof stream?.cancel === 'function') stream.cancel().catch(() => {})
  else stream?.destroy?.()
}

/** Whether a value is a stream of the web standard, of any implementation. */
export function isWebStream(body: unknown): body is ReadableStream<Uint8Array> {
  return typeof (body as { getReader?: unknown } | null | undefined)?.getReader === 'function'
}

/** The parts of a Node stream that are used, also of implementations beside Node's. */
export interface NodeStream {
  once(event: string, listener: () => void): unknown
  destroy(): void
  readonly destroyed?: boolean
  readonly writableFinished?: boolean
}

/** Whether a value is a stream of Node, by its methods. */
export function isNodeStream(value: unknown): value is NodeStream {
  const stream = value as Partial<NodeStream> | null | undefined
  return typeof stream?.once === 'function' && typeof stream.destroy === 'function'
}

/**
 * Gives the response `same` the properties of `response` that the constructor cannot set, or may refuse (a status of
 * 999), and has its clones get them too. Returns it.
 */
function posingAs(response: Response, same: Response): Response {
  const { url, redirected, type, status, statusText, ok } = response
  const clone = (): Response => posingAs(response, (Object.getPrototypeOf(same) as Response).clone.call(same))
  for (const [name, value] of Object.entries({ url, redirected, type, status, statusText, ok, clone })) {
    Object.defineProperty(same, name, { value, configurable: true })
  }
  return same
}

const READ_AHEAD = 65_536
const unread = new FinalizationRegistry<() => void>((ended) => ended())
