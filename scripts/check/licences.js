// npm run check -- licences: what the published packages bring into an application is under a licence that asks for no more
// than its text, and runs nothing when it is installed. package-lock.json says both of each package. The dependencies are
// followed to their ends; of peers, which applications choose themselves, the licence of each is looked at. Prints a line for
// each; exit 1 when one is against it.
import { readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { publicPackages } from '../workspace.js'

const LICENCES = ['MIT', 'ISC', 'BSD-2-Clause', 'BSD-3-Clause', '0BSD', 'Apache-2.0', 'Unlicense']

/** @typedef {{ version: string, license?: string, hasInstallScript?: boolean, dependencies?: object, optionalDependencies?: object }} Locked */

/** By folder. @type {{ packages: Record<string, Locked> }} */
const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8'))
/** @type {Set<string>} */
const seen = new Set()
/** @type {string[]} */
const wrong = []
for (const { folder, manifest } of publicPackages()) {
  for (const name of Object.keys(manifest.dependencies ?? {})) follow(name, folder)
  for (const name of Object.keys(manifest.peerDependencies ?? {})) judge(name, folder, 'peer')
}
for (const problem of wrong) console.error(problem)
console.log(`${seen.size} packages, ${wrong.length} problems`)
process.exitCode = wrong.length === 0 ? 0 : 1

/**
 * Looks at a dependency and all that it depends on.
 * @param {string} name
 * @param {string} from The folder of a package that needs it.
 */
function follow(name, from) {
  const folder = judge(name, from, 'dependency')
  const { dependencies, optionalDependencies } = packages[folder ?? ''] ?? {}
  if (folder)
    for (const each of Object.keys({ ...dependencies, ...optionalDependencies })) follow(each, folder)
}

/**
 * Returns its folder when it is seen for the first time.
 * @param {string} name
 * @param {string} from
 * @param {'dependency' | 'peer'} role
 */
function judge(name, from, role) {
  if (name.startsWith('@sluice/')) return undefined
  const folder = find(name, from)
  const { version, license = 'unknown', hasInstallScript } = packages[folder] ?? { version: 'in no lock' }
  const id = `${name} ${version}`
  if (seen.has(`${role} ${id}`)) return undefined
  seen.add(`${role} ${id}`)
  console.log(`${role.padEnd(10)}  ${license.padEnd(12)}  ${id}`)
  if (!LICENCES.includes(license))
    wrong.push(`${id}: the licence is ${license}, not one of ${LICENCES.join(', ')}`)
  if (role === 'dependency' && hasInstallScript) wrong.push(`${id}: runs a script when it is installed`)
  return folder
}

/**
 * Where Node finds a package from a folder.
 * @param {string} name
 * @param {string} from
 */
function find(name, from) {
  for (let folder = from; folder !== '.'; folder = dirname(folder)) {
    const nested = `${folder}/node_modules/${name}`
    if (packages[nested]) return nested
  }
  return `node_modules/${name}`
}
