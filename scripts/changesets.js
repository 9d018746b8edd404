// The changes that are not released yet: a file each in .changeset, as `npx changeset` writes them. Between the two lines of
// dashes stand the packages and whether the change is major, minor or patch; below them what CHANGELOG says of it.
import { readdirSync, readFileSync } from 'node:fs'

/** @typedef {{ path: string, packages: string[], text: string }} Changeset */

/** @returns {Changeset[]} */
export function pendingChangesets() {
  return readdirSync('.changeset')
    .filter((file) => file.endsWith('.md') && file !== 'README.md')
    .toSorted()
    .map((file) => parse(`.changeset/${file}`))
}

/**
 * @param {string} path
 * @returns {Changeset}
 */
function parse(path) {
  const [, head = '', text = ''] = /^---\n([^]*?)\n---\n([^]*)$/.exec(readFileSync(path, 'utf8')) ?? []
  const packages = [...head.matchAll(/^['"]?([^'":]+)['"]?: *(?:major|minor|patch)$/gm)]
  if (packages.length === 0 || text.trim() === '') {
    throw new Error(`${path} must name a package with major, minor or patch, and say what changes`)
  }
  return { path, packages: packages.map(([, name = '']) => name), text: text.trim() }
}
