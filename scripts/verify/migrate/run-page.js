// Runs the scripts of one page, on the other package and on Sluice, and again on the other package without each option of the
// row: run-page.js FILE REDIS_PORT. Writes what it found as JSON.
import FakeTimers from '@sinonjs/fake-timers'
import { Redis } from 'ioredis'
import { setImmediate as turn } from 'node:timers/promises'
import { asker, frameworks, traffic } from './applications.js'
import { readPages, runRows } from './pages.js'
import { PEERS } from './peers.js'
import { sideOf, withoutOption } from './sides.js'
import { queues } from './turns.js'

/** The time at which every script begins: the start of a minute, which windows that are aligned to the clock begin with too. */
const NOW = Date.UTC(2030, 0, 1)
/** Real milliseconds after which a script counts as one that says nothing. */
const MOST_MS = 5000
const [realTimeout, realClearTimeout] = [setTimeout, clearTimeout]
const AsyncFunction = /** @type {FunctionConstructor} */ ((async () => {}).constructor)

const [file = '', redisPort, folder] = process.argv.slice(2)
const page = readPages(folder).find((each) => each.file === file)
const peer = PEERS[file]
if (!page || !peer)
  throw new Error(`there is no page ${file}, or scripts/verify/migrate/peers.js does not have it`)
process.on('unhandledRejection', () => {})
process.removeAllListeners('warning')
// Before the packages are loaded, as some of them read the time then.
const clock = FakeTimers.install({
  now: NOW,
  toFake: ['Date', 'performance', 'hrtime', 'setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'],
})
for (const name of /** @type {const} */ (['log', 'info', 'warn', 'error'])) console[name] = () => {}

const words = { there: await wordsOf(peer.there), here: await wordsOf(peer.here) }

/** @typedef {{ title: string, kind: string, faults: readonly string[] }} Result */
/** @type {Result[]} */
const results = []
for (const table of page.tables) {
  for (const { row, script } of runRows(table)) {
    results.push({
      title: `${table.package} ${script.title}`,
      kind: row.kind,
      faults: await faultsOf(row, script).catch((error) => [String(error)]),
    })
  }
}
process.stdout.write(JSON.stringify(results), () => process.exit())

/**
 * @param {import('./pages.js').Row} row
 * @param {import('./pages.js').Script} script
 */
async function faultsOf(row, { code }) {
  const theirs = await answersOf('there', sideOf(code, 'there'))
  const ours = await answersOf('here', sideOf(code, 'here'))
  const shown = row.kind === 'same' ? [ours, ours] : row.answers
  /** @type {string[]} */
  const faults = []
  if (theirs === '') faults.push('says nothing')
  if (/^error: |: error: /.test(`${theirs}, ${ours}`)) faults.push(`fails: there ${theirs}, here ${ours}`)
  if (row.kind === 'differs' && theirs === ours) faults.push(`is the same: ${theirs}`)
  if (theirs !== shown[0]) faults.push(`there ${theirs}, not ${shown[0]}`)
  if (ours !== shown[1]) faults.push(`here ${ours}, not ${shown[1]}`)
  for (const name of row.names) {
    const without = withoutOption(code, name)
    if (without === undefined) faults.push(`does not use ${name}`)
    else if ((await answersOf('there', without)) === shown[0]) faults.push(`passes without ${name}`)
  }
  return faults
}

/**
 * The output of a script on one side, as a text.
 * @param {'there' | 'here'} side
 * @param {string} code
 */
async function answersOf(side, code) {
  clock.reset()
  traffic.onTheWay = 0
  const redis = /redis/i.test(code) ? watchedRedis() : undefined
  await redis?.flushdb()
  const application = peer?.framework ? await frameworks[peer.framework]?.() : undefined
  /** @type {string[]} */
  const said = []
  const tools = {
    ...queues(clock),
    ...(application && { app: application.app, ...asker(application) }),
    redis,
    redisUrl: `redis://127.0.0.1:${redisPort}/${databaseOf(file)}`,
    /** Lets time go on. @param {number} ms */
    wait: (ms) => clock.tickAsync(ms),
    /** Answers that are compared. @param {unknown[]} answers */
    say: (...answers) => void said.push(...answers.map(textOf)),
    it: undefined,
    limiter: undefined,
    store: undefined,
  }
  const scope = { ...words[side], ...tools }
  try {
    const run = new AsyncFunction(...Object.keys(scope), code)
    await inTime(run(...Object.values(scope)))
  } catch (error) {
    said.push(`error: ${error instanceof Error ? error.message : textOf(error)}`)
  } finally {
    // Some frameworks wait for a timer before they have closed.
    await Promise.race([application?.close(), new Promise((resolve) => realTimeout(resolve, 100))])
    redis?.disconnect()
    await turn()
  }
  return said.join(', ')
}

/** A client whose calls hold up the fake clock until they are answered. */
function watchedRedis() {
  const redis = new Redis(Number(redisPort), '127.0.0.1', { db: databaseOf(file) })
  const send = redis.sendCommand.bind(redis)
  redis.sendCommand = (...command) => {
    traffic.onTheWay++
    const answered = () => void traffic.onTheWay--
    const answer = send(...command)
    Promise.resolve(answer).then(answered, answered)
    return answer
  }
  return redis
}

/** @param {Promise<unknown>} run */
async function inTime(run) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer
  const overdue = new Promise((_resolve, reject) => {
    timer = realTimeout(() => reject(new Error('does not end')), MOST_MS)
  })
  await Promise.race([run, overdue]).finally(() => realClearTimeout(timer))
}

/** @param {unknown} value */
function textOf(value) {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? 'undefined')
}

/** All that some packages export. @param {readonly string[]} packages */
async function wordsOf(packages) {
  const modules = await Promise.all(packages.map((name) => import(name)))
  const all = modules.map((module, i) => ({
    ...module.default,
    ...module,
    [defaultNameOf(packages[i] ?? '')]: module.default,
  }))
  const { default: _, 'module.exports': __, ...rest } = Object.assign({}, ...all)
  return Object.fromEntries(
    Object.entries(rest).filter(([name, value]) => /^[\w$]+$/.test(name) && value !== undefined),
  )
}

/** A package's default export goes by the name that its README gives it. @param {string} name */
function defaultNameOf(name) {
  const names = {
    'p-queue': 'PQueue',
    'p-throttle': 'pThrottle',
    bottleneck: 'Bottleneck',
    '@fastify/rate-limit': 'rateLimit',
  }
  return (
    /** @type {Record<string, string>} */ (names)[name] ??
    name.replace(/\W+(\w)/g, (_, letter) => letter.toUpperCase())
  )
}

/** Pages run at the same time, each in a database of its own. @param {string} name */
function databaseOf(name) {
  return Object.keys(PEERS).indexOf(name)
}
