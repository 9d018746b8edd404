// The packages of the workspace that are published, as their manifests say: those that are not private.
import { existsSync, readdirSync, readFileSync } from 'node:fs'

/**
 * @typedef {object} Manifest
 * @property {string} name
 * @property {string} version
 * @property {boolean} [private]
 * @property {string} [main]
 * @property {string[]} [keywords]
 * @property {Record<string, string>} [bin]
 * @property {Record<string, string>} [devDependencies]
 * @property {Record<string, any>} [exports]
 * @property {Record<string, string>} [dependencies]
 * @property {Record<string, string>} [peerDependencies]
 * @property {Record<string, { optional?: boolean }>} [peerDependenciesMeta]
 */

/** @typedef {{ folder: string, manifest: Manifest }} PublicPackage */

/**
 * Each comes after those that it depends on.
 * @returns {PublicPackage[]}
 */
export function publicPackages() {
  const packages = readdirSync('packages')
    .map((name) => `packages/${name}`)
    .filter((folder) => existsSync(`${folder}/package.json`))
    .map((folder) => ({ folder, manifest: manifestOf(folder) }))
    .filter(({ manifest }) => manifest.private !== true)
  /** @type {Set<PublicPackage>} */
  const sorted = new Set()
  /** @param {PublicPackage} each */
  const add = (each) => {
    if (sorted.has(each)) return
    for (const name of Object.keys(each.manifest.dependencies ?? {})) {
      packages.filter(({ manifest }) => manifest.name === name).forEach(add)
    }
    sorted.add(each)
  }
  packages.forEach(add)
  return [...sorted]
}

/**
 * The entry points that are for users and have types. `internal` is for other packages of this repository.
 * @param {Manifest} manifest
 */
export function publicEntries({ exports = {} }) {
  return Object.entries(exports).filter(([path, { require }]) => path !== './internal' && require?.types)
}

/**
 * @param {string} folder
 * @returns {Manifest}
 */
export function manifestOf(folder) {
  return JSON.parse(readFileSync(`${folder}/package.json`, 'utf8'))
}
