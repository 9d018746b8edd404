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

/**
 * Runs the subject that the command line names and sets the exit code. An unknown one is an error.
 * @param {string} command
 * @param {Readonly<Record<string, Subject>>} subjects
 */
export function runSubject(command, subjects) {
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
  const [needs, , ...given] = subject
  const program = given.length > 0 ? given : [`scripts/${command}/${name}.js`]
  for (const need of needs.split(' ').filter(Boolean)) prepare(need)
  program.map(dirname).forEach(install)
  process.exitCode = spawnSync(process.execPath, [...program, ...args], { stdio: 'inherit' }).status ?? 1
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
 * Installs what a folder of a program locks, unless it has been since the lock was written.
 * @param {string} folder
 */
export function install(folder) {
  const [lock, done] = [join(folder, 'package-lock.json'), join(folder, 'node_modules/.package-lock.json')]
  if (folder === '.' || !existsSync(lock)) return
  if (existsSync(done) && statSync(done).mtimeMs > statSync(lock).mtimeMs) return
  if (npm(['ci', '--no-audit', '--no-fund', '--loglevel=error'], folder) !== 0) process.exit(1)
}
