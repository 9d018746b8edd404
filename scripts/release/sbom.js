// The software bill of materials of a release: what an application gets that installs all the packages, and not the peers
// that it chooses itself. CycloneDX, by `npm sbom`.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { npmOutput } from '../npm.js'
import { temporaryFolder } from '../temporary-folder.js'

/** @typedef {{ name: string, version: string, externalReferences: { url: string }[] }} Component */

/** Peers are neither installed nor missed. */
const WITHOUT_PEERS = ['--legacy-peer-deps']

/**
 * @param {readonly import('./pack.js').Tarball[]} tarballs
 * @param {string} path
 */
export function writeSbom(tarballs, path) {
  const project = temporaryFolder('sbom')
  const dependencies = Object.fromEntries(tarballs.map(({ name, file }) => [name, `file:${file}`]))
  const version = tarballs[0]?.version
  const manifest = { name: 'sluice', version, private: true, license: 'MIT', dependencies }
  writeFileSync(join(project, 'package.json'), JSON.stringify(manifest))
  npmOutput(['install', ...WITHOUT_PEERS, '--ignore-scripts', '--no-audit', '--no-fund'], project)
  const sbom = npmOutput(['sbom', '--sbom-format=cyclonedx', ...WITHOUT_PEERS], project)
  /** @type {{ components: Component[] }} */
  const { components, ...rest } = JSON.parse(sbom)
  writeFileSync(path, `${JSON.stringify({ ...rest, components: components.map(published) }, undefined, 2)}\n`)
  console.log(`SBOM: ${components.map(({ name, version }) => `${name} ${version}`).join(', ')}`)
}

/**
 * A component, but for the folder on this machine that ours lie in.
 * @param {Component} component
 */
function published({ externalReferences, ...component }) {
  return {
    ...component,
    externalReferences: externalReferences.filter(({ url }) => !url.startsWith('file:')),
  }
}
