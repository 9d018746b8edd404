// Runs the recipes of docs/stores.md for other engines, and prints a line for each: npm run verify -- engines. Four processes race for a
// key, three times, and the conformance kit runs on SQLite. Exit 1 when one fails. Node 24, which has SQLite, and the client of MariaDB
// come from npm, into this folder alone; MariaDB comes from the system.
import { freePort, until } from '@sluice/harness/redis'
import { fork, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { connect } from 'node:net'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { missingProgram, programPath } from '../../../scripts/programs.js'
import { temporaryFolder } from '../../../scripts/temporary-folder.js'

const HERE = dirname(fileURLToPath(import.meta.url))
const ROOT = join(HERE, '../../..')
const NODE_24 = join(HERE, 'node_modules/node-24/bin/node')
const LIMIT = 100

await onSqlite()
const missing = missingProgram('mariadb')
if (missing) console.log(`skipped  MariaDB: ${missing}`)
else await onMariadb()

async function onSqlite() {
  const kit = spawnSync(
    NODE_24,
    ['node_modules/jest/bin/jest.js', '--runTestsByPath', 'docs/test/recipes/sqlite.test.ts'],
    { cwd: ROOT, encoding: 'utf8' },
  )
  const tests = /^Tests: +(.*)$/m.exec(kit.stderr)?.[1] ?? kit.stderr
  report('SQLite, the kit on Node 24', kit.status === 0, tests)
  const file = join(temporaryFolder('sqlite'), 'limits.db')
  report('SQLite, four processes', ...(await race('sqlite', file, NODE_24)))
}

/** A server without users, whose one database is a folder. */
async function onMariadb() {
  const folder = temporaryFolder('mariadb')
  mkdirSync(join(folder, 'race'))
  const port = await freePort()
  const place = [`--datadir=${folder}`, `--port=${port}`, `--socket=${join(folder, 'socket')}`]
  const user = process.getuid?.() === 0 ? ['--user=root'] : []
  const server = spawn(
    /** @type {string} */ (programPath('mariadb')),
    ['--no-defaults', '--bind-address=127.0.0.1', '--skip-grant-tables', ...place, ...user],
    { stdio: 'ignore' },
  )
  try {
    await until('MariaDB', () => answers(port), 60_000)
    report('MariaDB, four processes', ...(await race('mariadb', String(port), process.execPath)))
  } finally {
    server.kill()
    await once(server, 'exit')
  }
}

/**
 * Four processes call a key at once, a key at a time. Returns whether each time exactly the limit was admitted.
 * @param {string} engine @param {string} place @param {string} node
 * @returns {Promise<[passed: boolean, figure: string]>}
 */
async function race(engine, place, node) {
  const sums = []
  for (const key of ['a', 'b', 'c']) {
    const racers = Array.from({ length: 4 }, () =>
      fork(join(HERE, 'racer.js'), [engine, place], {
        execPath: node,
        execArgv: ['--import', join(ROOT, 'scripts/sources/register.js')],
        cwd: ROOT,
      }),
    )
    await Promise.all(racers.map((racer) => next(racer)))
    const results = Promise.all(racers.map((racer) => next(racer)))
    for (const racer of racers) racer.send(key)
    sums.push((await results).reduce((sum, admitted) => sum + Number(admitted), 0))
  }
  return [sums.every((sum) => sum === LIMIT), `${sums.join(', ')} of ${LIMIT} admitted`]
}

/** The next message of a process; fails if it ends before. @param {import('node:child_process').ChildProcess} racer */
async function next(racer) {
  const ended = once(racer, 'exit').then(() => Promise.reject(new Error('a process of the race has failed')))
  const [message] = await Promise.race([once(racer, 'message'), ended])
  return message
}

/** @param {number} port @returns {Promise<boolean>} */
function answers(port) {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('data', () => (socket.destroy(), resolve(true))).once('error', () => resolve(false))
  })
}

/** @param {string} name @param {boolean} passed @param {string} figure */
function report(name, passed, figure) {
  if (!passed) process.exitCode = 1
  console.log(`${passed ? 'pass' : 'FAIL'}  ${name}: ${figure}`)
}
