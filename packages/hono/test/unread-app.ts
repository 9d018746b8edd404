import { createAdaptorServer, upgradeWebSocket } from '@hono/node-server'
import type { Limiter } from '@sluice/core'
import { Hono } from 'hono'
import { once } from 'node:events'
import type { Server } from 'node:http'
import { WebSocketServer } from 'ws'
import { limitMessages } from '../src/index.js'

/** A server that answers denied messages, for row 43 of the fault matrix. */
export const unread = {
  async Hono(limiter: Limiter): Promise<Server> {
    const limit = limitMessages({
      limiter,
      key: () => 'k',
      onDenied: ({ ws }, _same, { retryAfterMs }) =>
        ws.send(JSON.stringify({ error: 'x'.repeat(200), retryAfterMs })),
    })
    const app = new Hono().get('/', upgradeWebSocket(limit(() => ({}))))
    const websocket = { server: new WebSocketServer({ noServer: true }) as never }
    const server = createAdaptorServer({ fetch: app.fetch, websocket }) as Server
    await once(server.listen(0, '127.0.0.1'), 'listening')
    return server
  },
}
