import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2Stream } from 'node:http2'
import { getOrMake } from './get-or-make.js'

/*
 * Node asks for the address of a caller when it is first read. After a reset there is none any more, although nothing is
 * destroyed yet: callers that reset their connections would share an allowance beside their own, and neither a list nor a
 * ban would know them. But a Unix socket, a stream that was handed over and a Lambda function never have an address. So a
 * request without one has hung up only where its connection is gone, or is proven to be TCP, which has addresses while it
 * lasts. Without proof it is served. None of this is asked about a request that has an address.
 */

/** The parts of a Node request that show what became of its connection. Frameworks and test tools make requests with fewer. */
export interface NodeRequest {
  /** null once an HTTP/2 stream is closed. */
  readonly socket?: Connection | null
  /** The stream of HTTP/2. */
  readonly stream?: object | undefined
  readonly destroyed?: boolean | undefined
  readonly readableEnded?: boolean | undefined
}

interface Connection {
  readonly destroyed?: boolean | undefined
  readonly localAddress?: string | undefined
  once?(event: 'close', listener: () => void): unknown
}

/**
 * Whether the caller of a Node request without an address has hung up; false where its connection never has an address,
 * such as a Unix socket. It has if the request was destroyed before its body was read, if its HTTP/2 stream or its socket
 * is gone, or if the connection is TCP, which has an address as long as it lives.
 */
export function hasHungUp(request: NodeRequest): boolean {
  // A request whose body has been read is destroyed too, while its caller waits for the response.
  if (request.destroyed && !request.readableEnded) return true
  // Before the socket is read, which throws once its HTTP/2 session is gone.
  if (request.stream && isGoneStream(request.stream)) return true
  const { socket } = request
  return Boolean(socket?.destroyed) || isTcp(socket)
}

/**
 * Whether the HTTP/2 stream of a request, or the session (connection) that carries it, has ended; false for another kind
 * of stream.
 */
function isGoneStream(stream: { readonly session?: { readonly destroyed: boolean }; destroyed?: boolean }) {
  return isHttp2(stream) && (stream.destroyed || !stream.session || stream.session.destroyed)
}

/** Whether a request's `stream` is that of HTTP/2, which alone has an `rstCode`: an application may have put another there. */
function isHttp2<Stream extends object>(stream: Stream | undefined): stream is Stream {
  return 'rstCode' in (stream ?? {})
}

/** The parts of a socket that name the server which accepted it; of a TLS socket, those of the socket below it. */
interface Accepted {
  readonly _server?: { address(): unknown }
  readonly _parent?: Accepted | null
}

/**
 * Whether a socket is proven to belong to a TCP connection. It is asked about a caller without an address: a TCP connection
 * has one as long as it lives, so the caller has hung up, while a Unix socket never has one, which proves nothing. The proof
 * is that the socket has a local address, or that the server which accepted it listens on a port and not on a path. The
 * server is asked too, because not every system still knows the addresses of a connection that was reset. Node has it as
 * `_server` on the socket, or for TLS on the socket below (`_parent`). The property `server` may name another one, to which
 * the socket was handed later.
 */
export function isTcp(socket: (Connection & Accepted) | null | undefined): boolean {
  if (!socket) return false
  if (socket.localAddress) return true
  const address = (socket._parent ?? socket)._server?.address()
  return typeof address === 'object' && address !== null
}

type Raw = IncomingMessage & { readonly stream?: Http2Stream }

/** The listeners of each response, behind one 'finish' listener, because a GraphQL request may add 12,000. */
const LISTENERS = new WeakMap<ServerResponse, (() => void)[]>()

/**
 * Calls `listener` once the whole of a Node response has been sent; never if the caller hung up before. The event
 * 'finish' alone does not show that, so the stream or the socket is asked when it comes.
 */
export function onResponseSent(
  request: IncomingMessage,
  response: ServerResponse,
  listener: () => void,
): void {
  const present = LISTENERS.get(response)
  if (present) return void present.push(listener)
  const listeners = [listener]
  LISTENERS.set(response, listeners)
  /**
   * Whether the caller hung up before it had the whole response, asked when the response emits 'finish'. That event does not
   * exclude it: it also fires after a hang-up with HTTP/2, and in Node 20 and 22 if the connection closed before the last of
   * the body. With HTTP/2 the request has a `stream`, which shows it by not having written everything; the socket is shared
   * by many requests there. With HTTP/1 the socket is destroyed.
   */
  const hungUp = (): boolean => {
    const { stream, socket } = request as Raw
    return isHttp2(stream) ? request.aborted || !stream.writableFinished : socket.destroyed
  }
  response.once('finish', () => {
    if (!hungUp()) for (const each of listeners) each()
  })
}

/** A response of HTTP/1 or HTTP/2, or one of a test tool, which may have less. */
type AnyResponse = Omit<ServerResponse, 'req'> & {
  readonly stream?: Http2Stream
  readonly req?: Pick<NodeRequest, 'socket'>
}

/** The listeners of each connection, behind one 'close' listener, because a caller may pipeline many requests. */
const OF_CONNECTIONS = new WeakMap<object, Set<() => void>>()

/**
 * Calls `listener` when a Node response or its connection has closed, at once where it has. Returns a function that stops
 * listening. The connection is asked too: the response to a pipelined request emits nothing if the connection closes before
 * the response ahead of it has ended, and the response to an HTTP/2 stream does not show that the stream is gone.
 */
function onClosed(response: AnyResponse, listener: () => void): () => void {
  const { stream, req } = response
  const connection: Connection | null | undefined = isHttp2(stream) ? stream : req?.socket
  if (response.closed || response.destroyed || connection?.destroyed) {
    listener()
    return () => {}
  }
  const connectionListeners =
    connection &&
    getOrMake(OF_CONNECTIONS, connection, () => {
      const listeners = new Set<() => void>()
      connection.once?.('close', () => listeners.forEach((each) => each()))
      return listeners
    })
  const onClose = (): void => {
    stop()
    listener()
  }
  const stop = (): void => {
    response.off('close', onClose)
    connectionListeners?.delete(onClose)
  }
  response.once('close', onClose)
  connectionListeners?.add(onClose)
  return stop
}

/**
 * Calls `listener` if the connection of a Node response closes before the response has ended, because the caller has hung
 * up; at once where it has closed already. Returns a function that stops listening.
 */
export function onConnectionLost(response: ServerResponse, listener: () => void): () => void {
  return onClosed(response, () => void (response.writableEnded || listener()))
}

/** The promise of each response that is waited for; it resolves when the response has ended. */
const ENDED = new WeakMap<ServerResponse, Promise<void>>()

/**
 * Resolves when a Node response has ended: it has been sent, or its caller has hung up before. All that wait for a response
 * share one promise, as a GraphQL request may wait thousands of times.
 */
export function responseEnded(response: ServerResponse): Promise<void> {
  return getOrMake(ENDED, response, () => {
    return new Promise((ended) => {
      response.once('finish', ended)
      onClosed(response, ended)
    })
  })
}

/** The frames in which servers of Node call listeners. */
export const NODE_SERVER = /\bparserOnIncoming\b|\bonServerStream\b/
