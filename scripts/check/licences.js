// npm run check -- licences: what the published packages bring into an application is under a licence that asks for no more
// than its text, and runs nothing when it is installed. The dependencies are followed to their ends; of peers, which
// applications choose themselves, the licence of each is looked at. Prints a line for each; exit 1 when one is against it.
import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { publicPackages } from '../workspace.js'

const LICENCES = new Set(['MIT', 'ISC', 'BSD-2-Clause', 'BSD-3-Clause', '0BSD', 'Apache-2.0'])
/** `prepare` is none of them: npm runs it in checkouts alone. */
const ON_INSTALL = ['preinstall', 'install', 'postinstall']

/** @typedef {{ name: string, version: string, license?: unknown, scripts?: Record<string, string>, dependencies?: object, optionalDependencies?: object }} Manifest */

/** @type {Set<string>} */
const seen = new Set()
let wrong = 0
for (const { folder, manifest } of publicPackages()) {
  check(folder)
  for (const peer of Object.keys(manifest.peerDependencies ?? {})) {
    const installed = find(peer, folder)
    if (!installed) fail(`${peer}: a peer of ${manifest.name} that is not installed here`)
    else judge(installed, 'peer')
  }
}
console.log(`${seen.size} packages, ${wrong} problems`)
process.exitCode = wrong === 0 ? 0 : 1

/**
 * A package and all that it depends on.
 * @param {string} folder
 */
function check(folder) {
  if (seen.has(`dependency ${folder}`)) return
  const { name, dependencies, optionalDependencies } = judge(folder, 'dependency')
  for (const each of Object.keys({ ...dependencies, ...optionalDependencies })) {
    const installed = find(each, folder)
    if (installed) check(installed)
    else if (each in (dependencies ?? {})) fail(`${each}: a dependency of ${name} that is not installed here`)
  }
}

/**
 * @param {string} folder
 * @param {'dependency' | 'peer'} role
 * @returns {Manifest}
 */
function judge(folder, role) {
  /** @type {Manifest} */
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const id = `${manifest.name} ${manifest.version}`
  if (seen.has(`${role} ${folder}`)) return manifest
  seen.add(`${role} ${folder}`)
  const licence = typeof manifest.license === 'string' ? manifest.license : 'unknown'
  console.log(`${role.padEnd(10)}  ${licence.padEnd(12)}  ${id}`)
  if (!LICENCES.has(licence)) fail(`${id}: the licence is ${licence}, not one of ${[...LICENCES].join(', ')}`)
  if (role === 'peer') return manifest
  const scripts = ON_INSTALL.filter((script) => manifest.scripts?.[script])
  if (scripts.length > 0) fail(`${id}: runs ${scripts.join(', ')} when it is installed`)
  if (existsSync(join(folder, 'binding.gyp'))) fail(`${id}: is compiled when it is installed (binding.gyp)`)
  return manifest
}

/**
 * Where Node finds a package from a folder.
 * @param {string} name
 * @param {string} from
 * @returns {string | undefined}
 */
function find(name, from) {
  for (let folder = from; ; folder = dirname(folder)) {
    const path = join(folder, 'node_modules', name)
    if (existsSync(join(path, 'package.json'))) return relative('', realpathSync(path))
    if (folder === dirname(folder)) return undefined
  }
}

/** @param {string} problem */
function fail(problem) {
  wrong++
  console.error(problem)
}
