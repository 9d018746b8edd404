import type { Express } from 'express'
import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'

const servers: Server[] = []

/** Serves an application on a port of its own until `closeServers`. Returns its origin. */
export async function serve(app: Express): Promise<string> {
  const server = app.listen(0, '127.0.0.1')
  servers.push(server)
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

export async function closeServers(): Promise<void> {
  for (const server of servers.splice(0)) {
    server.close()
    server.closeAllConnections()
    await once(server, 'close')
  }
}
