// A static host: files of a folder under a base path, and 404.html for all else.
import { existsSync, readFileSync, statSync } from 'node:fs'
import { createServer } from 'node:http'
import { extname, join } from 'node:path'

const TYPES = /** @type {Record<string, string>} */ ({
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.json': 'application/json',
  '.md': 'text/markdown',
})

/** @typedef {Awaited<ReturnType<typeof serve>>} Site */

/**
 * @param {string} folder
 * @param {string} base
 * @returns {Promise<{ url: string, asked: string[], close: () => Promise<void> }>} `asked` are the paths that were asked for.
 */
export async function serve(folder, base) {
  /** @type {string[]} */
  const asked = []
  const server = createServer((req, res) => {
    const path = decodeURI(new URL(req.url ?? '/', 'http://site').pathname)
    asked.push(path)
    const name = path.startsWith(base) ? path.slice(base.length) || 'index.html' : ''
    const file = join(folder, name.endsWith('/') ? `${name}index.html` : name)
    const isThere = name !== '' && existsSync(file) && statSync(file).isFile()
    res.writeHead(isThere ? 200 : 404, {
      'content-type': TYPES[isThere ? extname(file) : '.html'] ?? 'text/plain',
    })
    res.end(readFileSync(isThere ? file : join(folder, '404.html')))
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(undefined)))
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : 0
  return {
    url: `http://127.0.0.1:${port}${base}`,
    asked,
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections()
        server.close(() => resolve())
      }),
  }
}
