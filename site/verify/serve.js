// A static host: files of a folder under a base path, and 404.html for all else.
import express from 'express'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { resolve } from 'node:path'

/** @typedef {Awaited<ReturnType<typeof serve>>} Site */

/**
 * @param {string} folder
 * @param {string} base
 * @returns `asked` are the paths that were asked for.
 */
export async function serve(folder, base) {
  /** @type {string[]} */
  const asked = []
  const app = express()
  app.use((req, _, next) => void next(asked.push(req.path) && undefined))
  app.use(base, express.static(folder))
  app.use((_, res) => void res.status(404).sendFile(resolve(folder, '404.html')))
  const server = createServer(app).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  return { url: `http://127.0.0.1:${port}${base}`, asked, close: () => server.close().closeAllConnections() }
}
