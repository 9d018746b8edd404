// Checks each public package as it would be published: its exports and files (publint), its types under every module
// system, the classic resolution too (attw), and what a stranger meets first: what the tarball holds, what it weighs,
// the range of its peers, the first lines of its README, and other packages of ours by exact minor version; and the sources
// for what is unused (knip). Prints what is wrong, and the size of each. Needs the build.
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { delimiter, join, resolve } from 'node:path'
import { npmPack } from '../../npm.js'
import { publicPackages } from '../../workspace.js'

/** The tools are those of this folder; npm, which attw packs with, is that of the machine. */
const TOOLS = resolve('scripts/check/packages/node_modules/.bin')
const ENV = { ...process.env, PATH: [TOOLS, process.env.PATH].join(delimiter) }

/** The most bytes that core takes when it is installed: it depends on nothing. */
const MOST_BYTES = 964_000

/** Longest line of code, in characters: Node prints the line that threw an error which is not caught, before the error. */
const LONGEST_LINE = 500

const checks = [run('knip')]
for (const published of publicPackages()) {
  const { folder } = published
  const internal = ['--exclude-entrypoints', './internal']
  checks.push(run('publint', 'run', folder, '--strict'))
  checks.push(run('attw', '--pack', folder, '--profile', 'strict', '--no-emoji', ...internal))
  const wrong = wrongWith(published)
  for (const what of wrong) console.error(`${folder}: ${what}`)
  checks.push(Promise.resolve(wrong.length === 0))
}
process.exitCode = (await Promise.all(checks)).every(Boolean) ? 0 : 1

/**
 * The mistakes that a user would trip over.
 * @param {import('../../workspace.js').PublicPackage} published
 * @returns {string[]}
 */
function wrongWith({ folder, manifest }) {
  const { name, version, keywords = [], dependencies = {}, peerDependencies = {} } = manifest
  const { unpackedSize, files } = npmPack(folder, '--dry-run')
  const wrong = []
  const paths = files.map(({ path }) => path)
  for (const path of ['README.md', 'LICENSE', 'CHANGELOG.md']) {
    if (!paths.includes(path)) wrong.push(`the tarball has no ${path}`)
  }
  for (const path of paths.filter((each) => /\.[cm]?js$/.test(each))) {
    const lines = readFileSync(join(folder, path), 'utf8').split('\n')
    if (lines.some(({ length }) => length > LONGEST_LINE))
      wrong.push(`${path} has a line of more than ${LONGEST_LINE} characters`)
  }
  if (paths.some((path) => path.endsWith('.map')))
    wrong.push('the tarball has source maps of sources that it has not')
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
  console.log(`${name}: ${unpackedSize} bytes, ${files.length} files`)
  if (name === '@sluice/core' && unpackedSize > MOST_BYTES)
    wrong.push(`${unpackedSize} bytes installed, more than ${MOST_BYTES}`)
  return wrong
}

/**
 * @param {string} tool
 * @param {string[]} args
 * @returns {Promise<boolean>} whether it finds nothing wrong; else what it says is printed.
 */
function run(tool, ...args) {
  return new Promise((done) => {
    // On Windows what npm installs as a program is a batch file, which only a shell starts.
    execFile(tool, args, { env: ENV, shell: process.platform === 'win32' }, (error, stdout, stderr) => {
      if (error) console.error(`${tool} ${args.join(' ')}\n${error.message}\n${stdout}${stderr}`)
      done(!error)
    })
  })
}
