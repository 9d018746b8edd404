import express, { type Express } from 'express'
import type { AddressInfo, Server } from 'node:net'
import { once } from 'node:events'

const servers: Server[] = []

/** An application that answers 'served' on every path, behind what `prepare` mounts. */
export function appWith(prepare: (app: Express) => void): Express {
  const app = express()
  prepare(app)
  app.use((_req, res) => void res.send('served'))
  return app
}

/** Listens on a free port, which it returns, until `closeServers`. */
export async function listen(app: Express): Promise<number> {
  const server = app.listen(0, '127.0.0.1')
  servers.push(server)
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

export async function closeServers(): Promise<void> {
  await Promise.all(
    servers.splice(0).map(async (server) => {
      server.close()
      await once(server, 'close')
    }),
  )
}
