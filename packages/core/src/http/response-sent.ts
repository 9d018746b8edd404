import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2Stream } from 'node:http2'

type Raw = IncomingMessage & { readonly stream?: Http2Stream }

/** What waits for the end of a response: one listener for all, as a GraphQL request may have 12,000 of them. */
const WAITING = new WeakMap<ServerResponse, (() => void)[]>()

/** Calls `listener` once the whole of a response of Node's has been sent, and never when the caller hung up before. */
export function onResponseSent(
  request: IncomingMessage,
  response: ServerResponse,
  listener: () => void,
): void {
  const waiting = WAITING.get(response)
  if (waiting) return void waiting.push(listener)
  const listeners = [listener]
  WAITING.set(response, listeners)
  // HTTP/2 always calls it finished, and Node 20 and 22 when the rest of it went to a connection that was gone.
  const hungUp = (): boolean => {
    const { stream, socket } = request as Raw
    return stream ? request.aborted || !stream.writableFinished : socket.destroyed
  }
  response.once('finish', () => {
    if (!hungUp()) for (const each of listeners) each()
  })
}
