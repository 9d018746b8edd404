// A static host: files of a folder under a base path, and 404.html for all else.
import express from 'express'
import { createServer } from 'node:http'
import { resolve } from 'node:path'
import { listening } from '../../scripts/verify/started.js'

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
  app.use(({ path }, _, next) => (asked.push(path), next()))
  app.use(base, express.static(folder))
  app.use((_, res) => res.status(404).sendFile(resolve(folder, '404.html')))
  const { origin, stop } = await listening(createServer(app))
  return { url: origin + base, asked, close: stop }
}
