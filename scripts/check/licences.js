// npm run check -- licences: what the published packages bring into an application is under a licence that asks for no more
// than its text, and runs nothing when it is installed. package-lock.json says both of each package. `npm ls` follows the
// dependencies to their ends; of peers, which applications choose themselves, the licence of each is looked at. Prints a line
// for each; exit 1 when one is against it.
import { readFileSync } from 'node:fs'
import { relative } from 'node:path'
import { npmOutput } from '../npm.js'
import { publicPackages } from '../workspace.js'

const LICENCES = ['MIT', 'ISC', 'BSD-2-Clause', 'BSD-3-Clause', '0BSD', 'Apache-2.0', 'Unlicense']

/** @typedef {{ version?: string, license?: string, hasInstallScript?: boolean, link?: boolean }} Locked */

/** By folder. @type {{ packages: Record<string, Locked> }} */
const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8'))
const published = publicPackages()
const ofPublished = published.map(({ manifest }) => `--workspace=${manifest.name}`)
const tree = ['--all', '--parseable', '--package-lock-only', '--omit=dev', '--omit=peer']
const dependencies = npmOutput(['ls', ...tree, ...ofPublished])
  .trim()
  .split('\n')
  .slice(1)
const peers = published.flatMap(({ manifest }) => Object.keys(manifest.peerDependencies ?? {}))
/** @type {string[]} */
const wrong = []
for (const path of dependencies) judge(relative('.', path).replaceAll('\\', '/'), 'dependency')
for (const name of new Set(peers)) judge(`node_modules/${name}`, 'peer')
for (const problem of wrong) console.error(problem)
console.log(`${wrong.length} problems`)
process.exitCode = wrong.length === 0 ? 0 : 1

/**
 * Prints the licence of what is locked for a folder, and notes what is wrong with it. Packages of ours are links there.
 * @param {string} folder
 * @param {'dependency' | 'peer'} role
 */
function judge(folder, role) {
  const { version = 'in no lock', license = 'unknown', hasInstallScript, link } = packages[folder] ?? {}
  if (link) return
  const id = `${folder.split('node_modules/').at(-1)} ${version}`
  console.log(`${role.padEnd(10)}  ${license.padEnd(12)}  ${id}`)
  if (!LICENCES.includes(license))
    wrong.push(`${id}: the licence is ${license}, not one of ${LICENCES.join(', ')}`)
  if (role === 'dependency' && hasInstallScript) wrong.push(`${id}: runs a script when it is installed`)
}
