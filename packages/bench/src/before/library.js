// The public API of a checkout that is built. The path comes from the exports of its package, which any commit has.
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'

/** @typedef {typeof import('@sluice/core') & typeof import('@sluice/core/redis')} Library */

/** @param {string} root Of the checkout. @returns {Promise<Library>} */
export async function libraryOf(root) {
  const core = resolve(root, 'packages/core')
  const { exports } = JSON.parse(readFileSync(resolve(core, 'package.json'), 'utf8'))
  const load = (/** @type {string} */ entry) =>
    import(pathToFileURL(resolve(core, exports[entry].import.default)).href)
  return { ...(await load('.')), ...(await load('./redis')) }
}
