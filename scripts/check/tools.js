// Counts the lines of tools: npm run check -- tools. A tool is a source that is neither packed nor run by Jest, wherever it lies; the
// adapters' kit and the stores of tests are run by Jest as parts of other packages' tests. Fault rows and what writes samples of logs stand
// apart: there are as many as there are faults and formats. Code in docs, examples and findings is there to be read. Lines that are blank or
// comment alone do not count. Prints a line a folder; exit 1 where there are more than may be (docs/decisions/0036-what-stays.md).
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { codeLines } from '../code-lines.js'
import { publicPackages } from '../workspace.js'

/** The most lines of all tools, and of the site (docs/decisions/0021-the-site.md). */
const MOST = { 'all tools': 28_000, site: 3340 }

const SOURCE = /\.(?:[cm]?[jt]s|vue|c)$/
const READ = /^(?:docs|examples|findings)\//
const KIT = /^packages\/harness\/src\/(?:adapters|stores)\//
const APART = /^packages\/(?:faults\/src\/rows|harness\/log-samples)\//

const packed = publicPackages().flatMap(({ folder }) =>
  ['src/', 'bin/', 'types/'].map((each) => `${folder}/${each}`),
)
const { stdout } = spawnSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
  encoding: 'utf8',
})
const sources = new Map(
  stdout
    .split('\n')
    .filter((path) => SOURCE.test(path) && existsSync(path))
    .map((path) => [path, readFileSync(path, 'utf8')]),
)
const ofTests = runByJest()
/** @type {Map<string, number>} */
const lines = new Map()
for (const [path, text] of sources) {
  if (READ.test(path) || KIT.test(path) || ofTests.has(path) || packed.some((each) => path.startsWith(each)))
    continue
  const [first = '', second = ''] = path.split('/')
  const folder = APART.test(path) ? 'apart' : first === 'packages' ? `${first}/${second}` : first
  lines.set(folder, (lines.get(folder) ?? 0) + codeLines(text))
}
const apart = lines.get('apart') ?? 0
lines.delete('apart')
for (const [folder, count] of [...lines].toSorted(([, one], [, other]) => other - one)) print(count, folder)
print(
  [...lines.values()].reduce((sum, count) => sum + count, 0),
  'all tools',
)
print(apart, 'apart: fault rows and samples of logs')

/** @param {number} count @param {string} what */
function print(count, what) {
  const most = Object.entries(MOST).find(([name]) => name === what)?.[1] ?? Infinity
  console.log(`${String(count).padStart(6)}  ${what}${most < Infinity ? `, at most ${most}` : ''}`)
  if (count > most) process.exitCode = 1
}

/** Tests, and what lies in a folder `test` and is named by a test or by what that names: imported, or started as a program. */
function runByJest() {
  const inTests = [...sources.keys()].filter((path) => path.includes('/test/'))
  const reached = new Set(inTests.filter((path) => path.endsWith('.test.ts')))
  for (const path of reached) {
    const names = [...(sources.get(path) ?? '').matchAll(/['"`](?:\.{0,2}\/)*([\w./-]+)\.[cm]?[jt]s['"`]/g)]
    for (const [, name = ''] of names)
      for (const other of inTests)
        if (packageOf(other) === packageOf(path) && withoutEnding(other).endsWith(`/${name}`))
          reached.add(other)
  }
  return reached
}

/** @param {string} path */
function packageOf(path) {
  return path.slice(0, path.indexOf('/test/'))
}

/** @param {string} path */
function withoutEnding(path) {
  return path.replace(/\.[cm]?[jt]s$/, '')
}
