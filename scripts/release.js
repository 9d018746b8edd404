// npm run release -- version | --dry-run | publish
//   version    turns the changesets into the next version of all packages, and into a section of CHANGELOG
//   --dry-run  packs every package, installs the tarballs in an empty project with npm, pnpm and yarn, runs the first example
//              of each README there, and writes the SBOM; the tarballs are those that would be published
//   publish    the same, and then publishes them with provenance; a workflow of GitHub does this
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { pendingChangesets } from './changesets.js'
import { npm } from './npm.js'
import { build } from './subjects.js'
import { packAll } from './release/pack.js'
import { repositoryAddress } from './release/repository.js'
import { tryTarballs } from './release/try.js'
import { writeSbom } from './release/sbom.js'
import { isUnreleased, raiseVersions } from './release/version.js'

const OUT = 'reports/release'
const [command = '', ...rest] = process.argv.slice(2)
if (rest.length > 0 || !['version', '--dry-run', 'publish'].includes(command)) {
  console.error('npm run release -- version | --dry-run | publish')
  process.exitCode = 2
} else if (command === 'version') raiseVersions()
else process.exitCode = release(command === 'publish')

/** @param {boolean} publishes */
function release(publishes) {
  const why = publishes ? notReady() : undefined
  if (why) {
    console.error(why)
    return 1
  }
  build()
  rmSync(OUT, { recursive: true, force: true })
  mkdirSync(OUT, { recursive: true })
  const tarballs = packAll(OUT)
  const passed = tryTarballs(tarballs)
  writeSbom(tarballs, join(OUT, 'sbom.cdx.json'))
  if (!passed) return 1
  if (!publishes) {
    console.log(`nothing was published; the tarballs and the SBOM are in ${OUT}`)
    return 0
  }
  return publishAll(tarballs)
}

/** Why nothing can be published yet. */
function notReady() {
  if (!repositoryAddress()) {
    return '"repository" in package.json is empty: the provenance of a package is tied to the address of its repository'
  }
  if (pendingChangesets().length > 0 || isUnreleased()) {
    return 'there are changes without a version: npm run release -- version'
  }
  return undefined
}

/**
 * Packages that are published already are left alone, so that a release that broke off can go on.
 * @param {readonly import('./release/pack.js').Tarball[]} tarballs
 */
function publishAll(tarballs) {
  for (const { name, version, file } of tarballs) {
    if (npm(['view', `${name}@${version}`, 'version', '--loglevel=silent']) === 0) continue
    const status = npm(['publish', file, '--provenance', '--access', 'public'])
    if (status !== 0) return status
  }
  return 0
}
