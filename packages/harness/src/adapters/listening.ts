import { once } from 'node:events'
import type { Server } from 'node:http'
import type { Served } from './adapter.js'

/** The result of `serve` for a Node server that begins to listen. */
export async function listening(server: Server): Promise<Served> {
  if (!server.listening) await once(server, 'listening')
  return { server, close: () => close(server) }
}

/** Ends a server with its connections, and resolves when that is done. */
async function close(server: Server): Promise<void> {
  server.close()
  server.closeAllConnections()
  await once(server, 'close')
}
