// Checks what `npm test` leaves out, as it needs other versions or other programs: npm run verify -- SUBJECT [ARGUMENT...].
// A subject is a line of the table: what to install, and the command that checks it. Without one, prints the table.
import { spawnSync } from 'node:child_process'
import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'

/** @typedef {{ about: string, install?: string, command: readonly string[] }} Subject */

/** `install` is a folder with a lock of its own. @type {Record<string, Subject>} */
const SUBJECTS = {
  nest11: {
    about:
      'the tests of packages/nest on Nest 11: Express and Fastify, Apollo and Mercurius, ws and socket.io',
    install: 'packages/nest/fixtures/nest11',
    command: ['node_modules/jest/bin/jest.js', '--config', 'packages/nest/fixtures/nest11/jest.config.ts'],
  },
  graphql: {
    about: 'CPU of the Nest guard for a GraphQL request of 12,000 operations, each figure below 60 ms',
    command: ['packages/nest/test/many-operations.js'],
  },
  imports: {
    about: 'what each package takes to install and to load, beside peers',
    command: ['scripts/measure-imports.js'],
  },
  runtimes: {
    about: 'the built packages on Node 20, 22, 24 and 26, Bun, Deno and workerd',
    install: 'scripts/runtimes',
    command: ['scripts/runtimes/run.js'],
  },
}

const [name = '', ...args] = process.argv.slice(2)
const subject = SUBJECTS[name]
if (subject) {
  if (subject.install) install(subject.install)
  process.exitCode = run(process.execPath, [...subject.command, ...args])
} else {
  for (const [known, { about }] of Object.entries(SUBJECTS))
    console.log(`npm run verify -- ${known.padEnd(10)} ${about}`)
  process.exitCode = name === '' ? 0 : 1
}

/**
 * Installs what a folder locks, unless it has been since the lock was written.
 * @param {string} folder
 */
function install(folder) {
  const [lock, done] = [join(folder, 'package-lock.json'), join(folder, 'node_modules/.package-lock.json')]
  if (existsSync(done) && statSync(done).mtimeMs > statSync(lock).mtimeMs) return
  if (run('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], folder) !== 0) process.exit(1)
}

/**
 * @param {string} command
 * @param {readonly string[]} args
 * @param {string} [cwd]
 */
function run(command, args, cwd) {
  return spawnSync(command, args, { stdio: 'inherit', ...(cwd && { cwd }) }).status ?? 1
}
