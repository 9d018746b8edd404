// Commands of many subjects: npm run COMMAND -- SUBJECT [ARGUMENT...]. Without a subject a command lists them.
import { spawnSync } from 'node:child_process'
import { existsSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { npm } from './npm.js'
import { missingProgram } from './programs.js'

/** The flags with which Node runs the sources. */
export const onSources = ['--import', './scripts/sources/register.js']

/**
 * The needs of a subject before it runs (`build`: the packages as they are published; `redis`, `postgres`, `lua`, `prometheus`, `chromium`, `servers`: programs), with a
 * space between; a line for the list; and what Node runs, if not scripts/COMMAND/SUBJECT.js. Further arguments are appended.
 * @typedef {readonly [needs: string, about: string, ...command: string[]]} Subject
 */

/** Words of a usage that stand for a text; others stand for a number. */
const TEXTS = ['NAME', 'PATH', 'REF', 'TEXT', 'URL']

/**
 * Runs the subject that the command line names and sets the exit code: 2, with its usage in a line, where its arguments are others
 * than it takes. An unknown one is an error.
 * @param {string} command
 * @param {Readonly<Record<string, Subject>>} subjects
 * @param {Readonly<Record<string, string>>} takes Usages of those that take arguments: `[ROUNDS] [NAME...] [--write] [--only TEXT]`.
 */
export function runSubject(command, subjects, takes = {}) {
  const [name = '', ...args] = process.argv.slice(2)
  const subject = Object.hasOwn(subjects, name) ? subjects[name] : undefined
  if (!subject) {
    if (name !== '') console.error(`npm run ${command} has no subject ${name}. Its subjects are:`)
    const width = Math.max(...Object.keys(subjects).map((each) => each.length))
    for (const [each, [, about]] of Object.entries(subjects))
      console.log(`npm run ${command} -- ${each.padEnd(width)}  ${about}`)
    process.exitCode = name === '' ? 0 : 1
    return
  }
  const usage = takes[name] ?? ''
  if (!fits(args, usage)) {
    console.error(`npm run ${command} -- ${`${name} ${usage}`.trimEnd()}`)
    process.exitCode = 2
    return
  }
  const [needs, , ...given] = subject
  const program = given.length > 0 ? given : [`scripts/${command}/${name}.js`]
  for (const need of needs.split(' ').filter(Boolean)) prepare(need)
  program.map(dirname).forEach(install)
  process.exitCode = spawnSync(process.execPath, [...program, ...args], { stdio: 'inherit' }).status ?? 1
}

/** What a usage ends with whose subject hands its arguments to Jest. */
const ANY = '[OPTION OF JEST...]'

/**
 * Whether arguments are those of a usage. Which options Jest has is for Jest to say.
 * @param {readonly string[]} args @param {string} usage
 */
export function fits(args, usage) {
  if (usage.endsWith(ANY)) return !args.includes('--help')
  const parts = [...usage.matchAll(/\[([^\]]+)\]/g)].map(([, part = '']) => part.split(' '))
  const options = new Map(parts.flatMap(([name = '', word]) => (name.startsWith('-') ? [[name, word]] : [])))
  const places = parts.flatMap(([name = '']) => (name.startsWith('-') ? [] : name))
  for (let i = 0; i < args.length; i++) {
    const arg = args[i] ?? ''
    if (options.has(arg)) {
      const word = options.get(arg)
      if (word && !isA(word, args[++i])) return false
    } else {
      if (arg.startsWith('-') || !isA(places[0], arg)) return false
      if (!places[0]?.endsWith('...')) places.shift()
    }
  }
  return true
}

/**
 * Whether a value is what a word of a usage stands for.
 * @param {string | undefined} word @param {string} [value]
 */
function isA(word, value = '') {
  if (!word || value === '') return false
  return TEXTS.includes(word.replace('...', '')) || /^\d+(\.\d+)?$/.test(value)
}

/** Builds the packages. */
export function build() {
  const status = npm(['run', '--silent', 'build'])
  if (status !== 0) process.exit(status)
}

/**
 * Ends the process where a need cannot be met, having said why. Only a Redis is demanded: what checks files by the other
 * programs is skipped without them.
 * @param {string} need
 */
function prepare(need) {
  if (need === 'build') return build()
  const missing = missingProgram(/** @type {import('./programs.js').Program} */ (need))
  if (!missing) return
  if (need === 'postgres') return console.log(`What needs a Postgres is skipped: ${missing}`)
  console.log(need === 'redis' ? `This starts a Redis of its own, but ${missing}` : `skipped: ${missing}`)
  process.exit(need === 'redis' ? 1 : 0)
}

/**
 * Installs what the folder of a program locks, or the nearest above it that locks something, unless that has been since the lock
 * was written. What the root locks is there.
 * @param {string} folder
 */
export function install(folder) {
  const above = dirname(folder)
  if (above === folder) return
  const [lock, done] = [join(folder, 'package-lock.json'), join(folder, 'node_modules/.package-lock.json')]
  if (!existsSync(lock)) return install(above)
  if (existsSync(done) && statSync(done).mtimeMs > statSync(lock).mtimeMs) return
  if (npm(['ci', '--no-audit', '--no-fund', '--loglevel=error'], folder) !== 0) process.exit(1)
}
