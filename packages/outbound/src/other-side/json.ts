import type { OutboundReply } from '../request.js'
import { isWebStream } from '../response-end.js'
import { numberIn } from './values.js'

/**
 * A copy of the reply with `json()`, which resolves with what `read` returns, or with undefined if the body may not be read. It
 * may if it is JSON, of an error or of at most 64 KiB by its Content-Length; with `readsAll` also of a success without a length.
 * `read` is called once at most: later calls of `json()` get the same promise.
 */
export function withJson(reply: OutboundReply, read: () => unknown, readsAll: boolean): OutboundReply {
  let json: Promise<unknown> | undefined
  /** Whether the body may be read before its caller gets it. Many replies state no length: they are chunked or packed. */
  const mayBeRead = (): boolean =>
    JSON_TYPE.test(reply.header('content-type') ?? '') &&
    (readsAll || reply.status >= 400 || numberIn(reply.header('content-length')) <= MOST_BYTES)
  return { ...reply, json: () => (json ??= Promise.resolve(mayBeRead() ? read() : undefined)) }
}

/**
 * Reads a stream, of the web standard or of Node, and returns the JSON in it. Undefined if it is no JSON, is larger than 64 KiB or
 * takes longer than a second. At the end the stream is cancelled in any case.
 */
export async function jsonOf(stream: unknown): Promise<unknown> {
  const reader = isWebStream(stream) ? stream.getReader() : undefined
  /**
   * Cancels the stream, by its reader if it has one, as a stream with a reader cannot be cancelled otherwise. This ends the loop
   * below if a second has passed, and frees a stream whose rest is not wanted.
   */
  const stop = (): void => {
    if (reader) Promise.resolve(reader.cancel()).catch(() => {})
    else (stream as { destroy?(): void } | null)?.destroy?.()
  }
  const timer = setTimeout(stop, LONGEST_MS)
  const chunks: Uint8Array[] = []
  try {
    let bytes = 0
    for await (const chunk of reader ? chunksOf(reader) : (stream as AsyncIterable<Uint8Array>)) {
      bytes += chunk.byteLength
      if (bytes > MOST_BYTES) return undefined
      chunks.push(chunk)
    }
    return parsed(Buffer.concat(chunks))
  } catch {
    return undefined
  } finally {
    clearTimeout(timer)
    stop()
  }
}

/** The chunks of a web stream, which is not async iterable everywhere. */
async function* chunksOf(reader: ReadableStreamDefaultReader<Uint8Array>): AsyncGenerator<Uint8Array> {
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    yield value
  }
}

/** The value of a JSON text, or of its bytes; undefined if the text is no JSON, or has more than 64 KiB. */
export function parsed(json: unknown): unknown {
  const text = String(isArrayBuffer(json) ? Buffer.from(json) : json)
  try {
    return Buffer.byteLength(text) > MOST_BYTES ? undefined : JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Whether a value is an ArrayBuffer, also of another realm. */
function isArrayBuffer(value: unknown): value is ArrayBuffer {
  return Object.prototype.toString.call(value) === '[object ArrayBuffer]'
}

export const MOST_BYTES = 65_536
export const LONGEST_MS = 1000
const JSON_TYPE = /^\s*application\/(?:[\w.+-]+\+)?(?:json|x-amz-json-1\.\d)\s*(?:;|$)/i
