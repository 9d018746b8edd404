// Installs every public package, packed as it would be published, into an empty project, and uses each of its entry
// points in every style of import: ESM, CommonJS, and TypeScript as nodenext (either kind of file) and as bundler. Prints
// a line a package; exit 1 when a style fails. Needs the build.
//
// The tarballs are laid out by hand, as npm would, and what they depend on is linked from the repository: so nothing
// depends on a registry, and each package sees what its manifest declares and no more, which `npm install` would hide
// by putting everything into one folder. Optional peers are left out: no entry point may need them to load.
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { npmPack } from '../npm.js'
import { runIn } from '../release/environment.js'
import { temporaryFolder } from '../temporary-folder.js'
import { manifestOf, publicPackages } from '../workspace.js'

const TYPES = ['--noEmit', '--strict', '--target', 'es2022', '--types', 'node']
const NODENEXT = [...TYPES, '--module', 'nodenext']
const BUNDLER = [...TYPES, '--module', 'preserve', '--moduleResolution', 'bundler']
const tsc = resolve('node_modules/typescript/bin/tsc')

/** How each style uses the entry points, and what runs its file. @type {Style[]} */
const STYLES = [
  { name: 'ESM import', file: 'esm.mjs', source: importing, args: [] },
  { name: 'CJS require', file: 'cjs.cjs', source: requiring, args: [] },
  { name: 'TypeScript nodenext ESM', file: 'nodenext.mts', source: typed, args: [tsc, ...NODENEXT] },
  { name: 'TypeScript nodenext CJS', file: 'nodenext.cts', source: typed, args: [tsc, ...NODENEXT] },
  { name: 'TypeScript bundler', file: 'bundler.ts', source: typed, args: [tsc, ...BUNDLER] },
]

/** @typedef {{ entry: string, names: string[] }} Entry what ESM exports under a name. */
/** @typedef {{ name: string, file: string, source: (entries: Entry[]) => string, args: string[] }} Style */
/** @typedef {import('../workspace.js').Manifest} Manifest */

const project = temporaryFolder('installs')
writeFileSync(join(project, 'package.json'), '{ "private": true }')
link('@types/node', project)
const packages = publicPackages()
for (const { folder, manifest } of packages) install(folder, manifest)
for (const { manifest } of packages) if (!check(manifest)) process.exitCode = 1

/**
 * @param {string} folder
 * @param {Manifest} manifest
 */
function install(folder, { name }) {
  const { filename } = npmPack(folder, '--pack-destination', project)
  const installed = join(project, 'node_modules', name)
  mkdirSync(installed, { recursive: true })
  execFileSync('tar', ['-xzf', join(project, filename), '--strip-components=1', '-C', installed])
  const { dependencies, peerDependencies, peerDependenciesMeta = {} } = manifestOf(installed)
  const needed = Object.keys({ ...dependencies, ...peerDependencies }).filter(
    (dependency) => !(dependency in peerDependenciesMeta) && !dependency.startsWith('@sluice/'),
  )
  for (const dependency of needed) {
    link(dependency, installed)
    if (existsSync(`node_modules/@types/${dependency}`)) link(`@types/${dependency}`, installed)
  }
}

/**
 * @param {string} dependency
 * @param {string} folder
 */
function link(dependency, folder) {
  const path = join(folder, 'node_modules', dependency)
  mkdirSync(dirname(path), { recursive: true })
  symlinkSync(resolve('node_modules', dependency), path)
}

/**
 * @param {Manifest} manifest
 * @returns {boolean} whether every style works.
 */
function check({ name, exports = {} }) {
  const paths = Object.keys(exports).filter((path) => path !== './package.json')
  const entries = paths.map((path) => ({ entry: name + path.slice(1), names: /** @type {string[]} */ ([]) }))
  const marks = STYLES.map(({ name: style, file, source, args }) => {
    writeFileSync(join(project, file), source(entries))
    const { failed, output } = runIn(project, [...args, file])
    const isWrong = failed && !isTheirs(output)
    if (isWrong) console.error(`${name}, ${style}\n${output}`)
    else if (source === importing) entries.forEach((entry, i) => (entry.names = JSON.parse(output)[i]))
    return `${isWrong ? '✗' : '✓'} ${style}`
  })
  console.log(`${name} (${paths.join(' ')}): ${marks.join(', ')}`)
  return marks.every((mark) => mark.startsWith('✓'))
}

/**
 * Prints what it gets, for the other styles to get the same.
 * @param {Entry[]} entries
 */
function importing(entries) {
  const imports = entries.map(({ entry }, i) => `import * as entry${i} from '${entry}'\n`)
  const names = entries.map((_, i) => `Object.keys(entry${i})`)
  return `${imports.join('')}console.log(JSON.stringify([${names.join(', ')}]))`
}

/** @param {Entry[]} entries */
function requiring(entries) {
  const checks = entries.map(
    ({ entry, names }) =>
      `deepEqual(Object.keys(require('${entry}')).sort(), ${JSON.stringify(names.sort())})`,
  )
  return ["const { deepEqual } = require('node:assert/strict')", ...checks].join('\n')
}

/**
 * Wants a declaration of each value. Those in the package itself are checked too.
 * @param {Entry[]} entries
 */
function typed(entries) {
  const lines = entries.flatMap(({ entry, names }, i) => [
    `import * as entry${i} from '${entry}'`,
    ...names.map((name) => `void entry${i}.${name}`),
  ])
  return lines.join('\n')
}

/**
 * Whether a compilation failed in the frameworks alone, which are linked from outside the project. Types of Koa's do.
 * @param {string} output
 */
function isTheirs(output) {
  const errors = output.split('\n').filter((line) => line.includes(': error TS'))
  return errors.length > 0 && errors.every((line) => line.startsWith('../'))
}
