// Commands of many subjects: npm run COMMAND -- SUBJECT [ARGUMENT...]. Without a subject a command lists them.
import { spawnSync } from 'node:child_process'
import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { npm } from './npm.js'
import { prepare } from './prepare.js'

/** What lets Node run the sources. */
export const onSources = ['--import', './scripts/sources/register.js']

/**
 * @typedef {object} Subject
 * @property {string} about One line for the list.
 * @property {readonly import('./prepare.js').Need[]} needs What has to be there before it runs.
 * @property {string} [install] A folder with a lock of its own, whose packages are installed first.
 * @property {readonly string[]} command What Node runs; further arguments are appended.
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
    for (const [each, { about }] of Object.entries(subjects)) {
      console.log(`npm run ${command} -- ${each.padEnd(width)}  ${about}`)
    }
    process.exitCode = name === '' ? 0 : 1
    return
  }
  prepare(subject.needs)
  if (subject.install) install(subject.install)
  process.exitCode =
    spawnSync(process.execPath, [...subject.command, ...args], { stdio: 'inherit' }).status ?? 1
}

/**
 * Installs what a folder locks, unless it has been since the lock was written.
 * @param {string} folder
 */
function install(folder) {
  const [lock, done] = [join(folder, 'package-lock.json'), join(folder, 'node_modules/.package-lock.json')]
  if (existsSync(done) && statSync(done).mtimeMs > statSync(lock).mtimeMs) return
  if (npm(['ci', '--no-audit', '--no-fund', '--loglevel=error'], folder) !== 0) process.exit(1)
}
