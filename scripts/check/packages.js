// Checks each public package as it would be published: its exports and files (publint), its types under every module
// system, the classic resolution too (attw), and what a stranger meets first: what the tarball holds, what it weighs,
// the range of its peers, the first lines of its README, and other packages of ours by exact minor version; and the sources
// for what is unused (knip). Prints what is wrong, and the size of each. Needs the build and, for the tools, `npm run`.
import { execFile } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { manifestOf, publicPackages } from '../workspace.js'

/** The most bytes that core takes when it is installed, with what it depends on. */
const MOST_BYTES = 800_000

/** Longest line of code, in characters: Node prints the line that threw an error which is not caught, before the error. */
const LONGEST_LINE = 500

/** @typedef {import('../workspace.js').Manifest & { keywords?: string[] }} Manifest */
/** @typedef {{ unpackedSize: number, files: { path: string }[] }} Tarball */

const folders = publicPackages().map(({ folder }) => folder)
const checks = folders.flatMap((folder) => [
  run('publint', 'run', folder, '--strict'),
  run('attw', '--pack', folder, '--profile', 'strict', '--no-emoji', '--exclude-entrypoints', './internal'),
  run('npm', 'pack', `./${folder}`, '--dry-run', '--json', '--ignore-scripts', '--offline').then((json) => {
    const wrong = json === undefined ? ['cannot be packed'] : wrongWith(folder, JSON.parse(json)[0])
    for (const what of wrong) console.error(`${folder}: ${what}`)
    return wrong.length === 0 ? json : undefined
  }),
])
checks.push(run('knip'))
process.exitCode = (await Promise.all(checks)).every((output) => output !== undefined) ? 0 : 1

/**
 * @param {string} folder
 * @param {Tarball} tarball
 * @returns {string[]} what a stranger would trip over.
 */
function wrongWith(folder, { unpackedSize, files }) {
  /** @type {Manifest} */
  const manifest = manifestOf(folder)
  const { name, version, keywords = [], dependencies = {}, peerDependencies = {} } = manifest
  const wrong = []
  const paths = files.map(({ path }) => path)
  for (const path of ['README.md', 'LICENSE', 'CHANGELOG.md']) {
    if (!paths.includes(path)) wrong.push(`the tarball has no ${path}`)
  }
  for (const path of paths.filter((each) => /\.[cm]?js$/.test(each))) {
    const longest = Math.max(
      ...readFileSync(join(folder, path), 'utf8')
        .split('\n')
        .map(({ length }) => length),
    )
    if (longest > LONGEST_LINE) wrong.push(`${path} has a line of ${longest} characters`)
  }
  const maps = paths.filter((path) => path.endsWith('.map'))
  if (maps.length > 0) wrong.push(`${maps.length} source maps of sources that are not in the tarball`)
  if (keywords.length === 0) wrong.push('no keywords')
  for (const [peer, range] of Object.entries(peerDependencies)) {
    if (!range.split('||').every((part) => /[\^~<]/.test(part)))
      wrong.push(`${peer} ${range} has no upper bound`)
  }
  const minor = version.replace(/\.\d+$/, '')
  for (const [dependency, range] of Object.entries(dependencies)) {
    if (dependency.startsWith('@sluice/') && !range.startsWith(`~${minor}.`))
      wrong.push(`${dependency} ${range} is not of the minor version of this package, ~${version}`)
  }
  const first = /```sh\n(.*)\n/.exec(readFileSync(`${folder}/README.md`, 'utf8').slice(0, 600))?.[1] ?? ''
  if (!first.startsWith('npm install ') || !first.split(' ').includes(name)) {
    wrong.push(`the README does not begin with npm install ${name}`)
  }
  const own = Object.keys(dependencies).filter((dependency) => !dependency.startsWith('@sluice/'))
  const bytes = own.reduce((sum, dependency) => sum + sizeOf(installed(folder, dependency)), unpackedSize)
  console.log(`${name}: ${bytes} bytes installed, @sluice/core not counted again, ${files.length} files`)
  if (name === '@sluice/core' && bytes > MOST_BYTES)
    wrong.push(`${bytes} bytes installed, more than ${MOST_BYTES}`)
  return wrong
}

/**
 * Where npm has put a dependency: beside the package's sources where others want another version.
 * @param {string} folder
 * @param {string} dependency
 */
function installed(folder, dependency) {
  const own = join(folder, 'node_modules', dependency)
  return existsSync(own) ? own : join('node_modules', dependency)
}

/** @param {string} folder */
function sizeOf(folder) {
  const paths = readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((path) => join(folder, path))
  return paths.map((path) => statSync(path)).reduce((sum, stat) => sum + (stat.isFile() ? stat.size : 0), 0)
}

/**
 * @param {string} tool
 * @param {string[]} args
 * @returns {Promise<string | undefined>} what it prints, or undefined where it fails, which is printed.
 */
function run(tool, ...args) {
  return new Promise((resolve) => {
    // On Windows what npm installs as a program is a batch file, which only a shell starts.
    execFile(tool, args, { shell: process.platform === 'win32' }, (error, stdout, stderr) => {
      if (error) console.error(`${tool} ${args.join(' ')}\n${error.message}\n${stdout}${stderr}`)
      resolve(error ? undefined : stdout)
    })
  })
}
