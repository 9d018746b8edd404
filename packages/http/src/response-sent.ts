import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2Stream } from 'node:http2'

type Raw = IncomingMessage & { readonly stream?: Http2Stream }

/** The listeners of each response, behind one 'finish' listener, because a GraphQL request may add 12,000. */
const LISTENERS = new WeakMap<ServerResponse, (() => void)[]>()

/** Calls `listener` once the whole of a Node response has been sent; never if the caller hung up before. */
export function onResponseSent(
  request: IncomingMessage,
  response: ServerResponse,
  listener: () => void,
): void {
  const present = LISTENERS.get(response)
  if (present) return void present.push(listener)
  const listeners = [listener]
  LISTENERS.set(response, listeners)
  // 'finish' also fires when the caller hung up: always with HTTP/2, and in Node 20 and 22 if the connection closed before
  // the last of the body.
  const hungUp = (): boolean => {
    const { stream, socket } = request as Raw
    return stream ? request.aborted || !stream.writableFinished : socket.destroyed
  }
  response.once('finish', () => {
    if (!hungUp()) for (const each of listeners) each()
  })
}
