// The public API of packages of a checkout that is built. The paths come from their manifests, which any commit has.
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'

/** @typedef {typeof import('@sluice/core') & typeof import('@sluice/core/redis')} Library */

/** Core, with its store over Redis. @param {string} root Of the checkout. @returns {Promise<Library>} */
export async function libraryOf(root) {
  return { ...(await load(root, 'core')), ...(await load(root, 'core', './redis')) }
}

/** @param {string} root @returns {Promise<typeof import('@sluice/express')>} */
export const expressOf = (root) => load(root, 'express')

/** @param {string} root @returns {Promise<typeof import('@sluice/machine')>} */
export const machineOf = (root) => load(root, 'machine')

/** @param {string} root @returns {Promise<typeof import('@sluice/postgres')>} */
export const postgresOf = (root) => load(root, 'postgres')

/** @param {string} root @returns {Promise<typeof import('@sluice/outbound')>} */
export const outboundOf = (root) => load(root, 'outbound')

/** @param {string} root @param {string} name Of the package's folder. @param {string} [entry] */
function load(root, name, entry = '.') {
  const folder = resolve(root, 'packages', name)
  const { exports } = JSON.parse(readFileSync(resolve(folder, 'package.json'), 'utf8'))
  return import(pathToFileURL(resolve(folder, exports[entry].import.default)).href)
}
