// npm run check -- workflows: what GitHub runs is right (actionlint), and is a command that runs here too: npm ci, a script
// of package.json with subjects that it has, or .ci/run. Exit 1 when something is wrong.
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'

// Not an import: the compiler reads this file where the folder's packages are not installed.
const { createLinter } = createRequire(import.meta.url)('actionlint')

const FOLDER = '.github/workflows'
/** Commands of many subjects list them when they get none. */
const OF_SUBJECTS = new Set(['check', 'verify', 'bench', 'release'])

/** @type {{ scripts: Record<string, string> }} */
const { scripts } = JSON.parse(readFileSync('package.json', 'utf8'))
const lint = await createLinter()
/** @type {string[]} */
const problems = []
let commands = 0
for (const file of readdirSync(FOLDER)) {
  const path = `${FOLDER}/${file}`
  const text = readFileSync(path, 'utf8')
  for (const { line, column, message } of lint(text, path))
    problems.push(`${path}:${line}:${column}: ${message}`)
  for (const [index, line] of text.split('\n').entries()) {
    const [, command] = /^\s*(?:- )?run:\s*(.*)$/.exec(line) ?? []
    if (command === undefined) continue
    commands++
    const why = wrongWith(command)
    if (why) problems.push(`${path}:${index + 1}: ${why}`)
  }
}
for (const problem of problems) console.error(problem)
console.log(`${commands} commands of workflows, ${problems.length} problems`)
process.exitCode = problems.length === 0 ? 0 : 1

/**
 * @param {string} command
 * @returns {string | undefined}
 */
function wrongWith(command) {
  if (command === 'npm ci' || command === 'bash .ci/run') return undefined
  const [, script = '', rest = ''] = /^npm (test|(?:run )[\w:]+)(?: -- (.*))?$/.exec(command) ?? []
  const name = script.replace('run ', '')
  if (!Object.hasOwn(scripts, name)) return `${command || 'a block'} is no command that runs here`
  const [first = ''] = rest.split(' ')
  if (OF_SUBJECTS.has(name) && !subjectsOf(name).includes(first)) return `npm run ${name} has no ${first}`
  const missing = name === 'test' ? rest.split(' ').filter((path) => path && !existsSync(path)) : []
  return missing.length > 0 ? `there is no ${missing.join(', ')}` : undefined
}

/**
 * The subjects of a command, from its own list of them, as `npm run check -- api  what it does` or `npm run release -- version | publish`.
 * @param {string} name
 */
function subjectsOf(name) {
  const { stdout, stderr } = spawnSync(process.execPath, [`scripts/${name}.js`], { encoding: 'utf8' })
  const usages = (stdout + stderr).matchAll(/^npm run \w+ -- (.*?)(?: {2}|$)/gm)
  return [...usages].flatMap(([, subjects = '']) => subjects.split(' | '))
}
