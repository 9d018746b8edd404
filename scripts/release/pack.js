// Packs every public package as it is published: its built folder with the repository's address in the manifest. Each
// tarball is looked through for addresses of other repositories.
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { npmPack } from '../npm.js'
import { temporaryFolder } from '../temporary-folder.js'
import { publicPackages } from '../workspace.js'
import { otherAddresses, repositoryField } from './repository.js'

/** @typedef {{ name: string, version: string, folder: string, file: string }} Tarball `file` is absolute. */

/**
 * @param {string} out
 * @returns {Tarball[]} Each after those that it depends on.
 */
export function packAll(out) {
  const staging = temporaryFolder('pack')
  return publicPackages().map((published) => packOne(published, join(staging, published.folder), out))
}

/**
 * @param {import('../workspace.js').PublicPackage} published
 * @param {string} staged
 * @param {string} out
 * @returns {Tarball}
 */
function packOne({ folder, manifest }, staged, out) {
  for (const { path } of npmPack(folder, '--dry-run').files) {
    const target = join(staged, path)
    mkdirSync(dirname(target), { recursive: true })
    cpSync(join(folder, path), target)
    const others = otherAddresses(readFileSync(target, 'utf8'))
    if (others.length > 0) throw new Error(`${folder}/${path} names another repository: ${others.join(', ')}`)
  }
  const published = { ...manifest, ...repositoryField(folder) }
  writeFileSync(join(staged, 'package.json'), `${JSON.stringify(published, undefined, 2)}\n`)
  const { filename, size, files } = npmPack(staged, '--pack-destination', resolve(out))
  const { name, version } = manifest
  console.log(`${name} ${version}: ${files.length} files, ${size} bytes packed`)
  return { name, version, folder, file: resolve(out, filename) }
}
