// Installs the tarballs of a release in an empty project with each package manager, and runs there the first example of each
// package's README as a reader pastes it. Prints a line for each example; what a manager itself says only when it fails.
import { readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { npm, npmProgram } from '../npm.js'
import { temporaryFolder } from '../temporary-folder.js'
import { manifestOf } from '../workspace.js'
import { report, runIn } from './environment.js'
import { firstExample, importsOf, installedBy } from './example.js'

/** @typedef {import('./pack.js').Tarball} Tarball */
/** @typedef {{ name: string, file: string, needs: string[] }} Program */
/** @typedef {readonly [name: string, install: string[], node: string[]]} Manager */

const MANAGERS = 'scripts/release/managers'
const PNPM = resolve(MANAGERS, 'node_modules/pnpm/bin/pnpm.cjs')
const YARN = resolve(MANAGERS, 'node_modules/@yarnpkg/cli-dist/bin/yarn.js')

/** How each installs a project and runs Node in it. @type {readonly Manager[]} */
const managers = [
  ['npm', [npmProgram(), 'install', '--no-audit', '--no-fund'], []],
  ['pnpm', [PNPM, 'install', '--ignore-workspace'], []],
  ['yarn', [YARN, 'install'], [YARN, 'node']], // Plug'n'Play: what a package did not declare it cannot import
]

/**
 * @param {readonly Tarball[]} tarballs
 * @returns {boolean} whether every example ran under every manager.
 */
export function tryTarballs(tarballs) {
  if (npm(['ci', '--no-audit', '--no-fund', '--loglevel=error'], MANAGERS) !== 0) return false
  let passed = true
  for (const manager of managers) {
    passed = tryIn(temporaryFolder(manager[0]), manager, tarballs) && passed
  }
  return passed
}

/**
 * @param {string} project
 * @param {Manager} manager
 * @param {readonly Tarball[]} tarballs
 */
function tryIn(project, [name, install, node], tarballs) {
  const programs = tarballs.map((tarball) => writeProgram(project, tarball))
  const links = Object.fromEntries(tarballs.map((tarball) => [tarball.name, `file:${tarball.file}`]))
  const dependencies = { ...links, ...versionsOf(programs.flatMap(({ needs }) => needs)) }
  // The tarballs depend on each other, as nothing that is published does yet: npm takes those that are there, and the others
  // have to be given.
  const overrides = { resolutions: links, pnpm: { overrides: links } }
  const manifest = { name: 'project', private: true, type: 'module', dependencies, ...overrides }
  writeFileSync(join(project, 'package.json'), JSON.stringify(manifest))
  writeFileSync(join(project, 'run.js'), readFileSync('scripts/release/run-example.js'))
  const installed = runIn(project, install)
  if (installed.failed) return report(`${name}: cannot install the tarballs`, installed)
  let passed = true
  for (const { name: published, file } of programs) {
    const ran = runIn(project, [...node, 'run.js', file])
    passed = report(`${name.padEnd(4)} ${published}`, ran) && passed
  }
  return passed
}

/**
 * @param {string} project
 * @param {Tarball} tarball
 * @returns {Program}
 */
function writeProgram(project, { name, folder }) {
  const file = `${name.replace(/\W+/g, '-').slice(1)}.js`
  const { bin, peerDependencies = {}, peerDependenciesMeta = {} } = manifestOf(folder)
  const readme = readFileSync(join(folder, 'README.md'), 'utf8')
  // The README of a command has lines for a shell: here it is loaded with all that it imports.
  const code = bin ? `import '${name}'\n` : firstExample(readme)
  writeFileSync(join(project, file), code)
  const peers = Object.keys(peerDependencies).filter((peer) => !peerDependenciesMeta[peer]?.optional)
  return { name, file, needs: [...peers, ...installedBy(readme), ...importsOf(code)] }
}

/**
 * The versions that this repository is tested with. Nest asks for a platform and two peers of its own.
 * @param {readonly string[]} names
 */
export function versionsOf(names) {
  const { devDependencies = {} } = manifestOf('.')
  const nest = names.includes('@nestjs/core') ? ['@nestjs/platform-express', 'reflect-metadata', 'rxjs'] : []
  return Object.fromEntries([...names, ...nest].map((name) => [name, devDependencies[name] ?? '*']))
}
