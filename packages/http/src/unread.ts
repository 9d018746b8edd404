import { whole } from '@sluice/core/internal'

/*
 * Each denied message of a WebSocket is answered, and what a client does not read waits in this process. A client that sends
 * and never reads would thus fill the memory by being denied. So there is a bound on the bytes that wait.
 */

/** The option: most bytes that may wait for the client of a connection before a denied message closes it. */
export const maxBuffered = whole(0, 2 ** 30, 2 ** 20)

/** A connection of `ws`, of Bun, of another runtime, or the client of socket.io on one. Runtimes may show no number of bytes. */
export interface ClientConnection {
  readonly bufferedAmount?: number
  getBufferedAmount?(): number
  close?(code: number, reason: string): void
  /** socket.io's; it queues packets while its transport waits for the client. */
  readonly conn?: {
    readonly writeBuffer: readonly { readonly data?: string | { readonly length: number } }[]
    readonly transport: { readonly socket?: ClientConnection }
    close(discard: boolean): void
  }
}

/**
 * Closes a WebSocket connection with the status 1008 if more than `most` bytes wait for its client to read. Returns
 * whether it did. A client of socket.io has its socket inside `conn`, which is closed too, without waiting until the
 * client has read its packets.
 */
export function closeUnread(connection: ClientConnection, most: number): boolean {
  if (!holdsMore(connection, most)) return false
  const { conn } = connection
  const socket = conn ? conn.transport.socket : connection
  socket?.close?.(1008, 'Too Many Requests')
  conn?.close(true) // without waiting
  return true
}

/**
 * Whether more than `most` bytes wait in this process for a client to read, which would fill the memory if the client never
 * reads. Bytes wait in its WebSocket, which tells their number by a property or by a method; a runtime that has neither
 * counts as 0. With socket.io (`conn`), packets that it has not yet passed to the WebSocket wait too.
 */
function holdsMore(connection: ClientConnection, most: number): boolean {
  const { conn } = connection
  const socket = conn ? conn.transport.socket : connection
  let bytes = socket?.bufferedAmount ?? socket?.getBufferedAmount?.() ?? 0
  for (const { data } of conn?.writeBuffer ?? []) bytes += data?.length ?? 0
  return bytes > most
}
