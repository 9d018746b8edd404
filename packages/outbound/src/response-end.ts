/**
 * Returns a response like the given one, and calls `ended` when its body has arrived (with true), failed or was cancelled; at once
 * if it has no body. `seen` gets each piece of a web stream. Up to 64 KiB are read in advance, so that a small body ends even if
 * the caller never reads it. A larger body that is never read ends when it is garbage-collected (`unread`). A response with a web
 * stream is made anew around an observed stream (`observed`); one with a Node stream, of node-fetch, is returned itself, because
 * the stream reports its end by events.
 */
export function untilEnd(response: Response, ended: Ended, seen?: (piece: Uint8Array) => void): Response {
  const { body } = response
  if (!body) {
    ended(true)
    return response
  }
  // At the end of the body `ended` is taken out of the registry `unread`, which would keep it in memory, with the call and its
  // permit, until the body is garbage-collected.
  const end: Ended = (isWhole) => {
    unread.unregister(ended)
    ended(isWhole)
  }
  if (isNodeStream(body)) {
    unread.register(response, ended, ended)
    for (const event of ['finish', 'end', 'close', 'error'])
      body.once(event, () => end(event === 'finish' || event === 'end'))
    // node-fetch buffers the body: it has arrived once it is in the buffer, whether it is read from there or not.
    if (body.writableFinished === true || body.destroyed === true) end(body.writableFinished === true)
    return response
  }
  const SameClass = response.constructor as typeof Response
  const observedBody = observed(body, end, seen)
  const copy = disguisedAs(response, new SameClass(observedBody, { headers: response.headers }))
  // Not the response: its body and its clones can be read without it.
  unread.register(observedBody, ended, ended)
  return copy
}

/**
 * Returns a new stream of the same bytes. It calls `seen` with each piece, and `ended` when it has ended (with true), failed or
 * was cancelled. It reads `stream` as it is read itself, and up to 64 KiB (`READ_AHEAD`) ahead.
 */
export function observed<T extends Uint8Array>(
  stream: ReadableStream<T>,
  ended: Ended,
  seen?: (piece: Uint8Array) => void,
): ReadableStream<T> {
  // Locked at the first read, so that the stream can still be discarded if no response is made of this one.
  let reader: ReadableStreamDefaultReader<T> | undefined
  return new ReadableStream(
    {
      type: 'bytes',
      /**
       * Passes the next piece on, when the reader of the new stream asks for it. Empty pieces are left out, as a stream of bytes
       * refuses them. At the end of `stream`, or if reading it fails, the new stream ends in the same way and `ended` is called.
       */
      async pull(controller) {
        let isWhole = false
        try {
          reader ??= stream.getReader()
          let piece = await reader.read()
          while (piece.value?.byteLength === 0) piece = await reader.read()
          if (!piece.done) {
            seen?.(piece.value)
            return controller.enqueue(ownBytes(piece.value))
          }
          isWhole = true
          controller.close()
          // A reader with a buffer of its own gets it back.
          controller.byobRequest?.respond(0)
        } catch (error) {
          controller.error(error)
        }
        ended(isWhole)
      },
      /**
       * Called when the reader of the new stream wants no more: calls `ended` and cancels `stream`, by its reader if it has one, as
       * a stream with a reader cannot be cancelled otherwise.
       */
      cancel(reason) {
        ended(false)
        return (reader ?? stream).cancel(reason)
      },
    },
    { highWaterMark: READ_AHEAD },
  ) as ReadableStream<T>
}

/**
 * Returns the bytes if they fill their buffer, otherwise a copy with a buffer of its own. A byte stream takes over the buffer of
 * the bytes that it is given, and with it whatever else lies in there.
 */
function ownBytes(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const fillBuffer = bytes.byteLength === bytes.buffer.byteLength && bytes.buffer instanceof ArrayBuffer
  return fillBuffer ? (bytes as Uint8Array<ArrayBuffer>) : new Uint8Array(bytes)
}

/** Cancels a body that no caller reads: a web stream by `cancel`, a Node stream by `destroy`. Leaves any other body alone. */
export function discard(body: unknown): void {
  const stream = body as { cancel?: () => Promise<void>; destroy?: () => void } | null | undefined
  if (typeof stream?.cancel === 'function') Promise.resolve(stream.cancel()).catch(() => {})
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
  readonly readableEnded?: boolean
}

/** Whether a value is a stream of Node, by its methods. */
export function isNodeStream(value: unknown): value is NodeStream {
  const stream = value as Partial<NodeStream> | null | undefined
  return typeof stream?.once === 'function' && typeof stream.destroy === 'function'
}

/**
 * Gives `copy` the properties of `response` that the constructor of responses cannot set (the URL, for example) or may refuse (a
 * status of 999), and returns it. Its method `clone` makes clones that have these properties too.
 */
function disguisedAs(response: Response, copy: Response): Response {
  const { url, redirected, type, status, statusText, ok } = response
  const clone = (): Response =>
    disguisedAs(response, (Object.getPrototypeOf(copy) as Response).clone.call(copy))
  for (const [name, value] of Object.entries({ url, redirected, type, status, statusText, ok, clone })) {
    Object.defineProperty(copy, name, { value, configurable: true })
  }
  return copy
}

const READ_AHEAD = 65_536
const unread = new FinalizationRegistry<Ended>((ended) => ended(false))

/** Called at the end of a body, with whether all of it has arrived. */
export type Ended = (isWhole: boolean) => void
