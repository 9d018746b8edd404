// Prints the source files that one request passes through, from Express to Redis and back, with the functions that ran, and
// the promises that they made: npm run verify -- journey. Exit 1 above the bars.
import { startRedis } from '@sluice/testing/redis'
import { rateLimit } from '@sluice/express'
import { redisStore } from '@sluice/core/redis'
import express from 'express'
import { once } from 'node:events'
import { Session } from 'node:inspector/promises'
import { createServer } from 'node:http'
import { promiseHooks } from 'node:v8'

/** A reader who follows a request has to open so many files, and to look through so many promises. */
const MOST_FILES = 28
const MOST_PROMISES = 3

/** Requests before the one that is looked at: connections, scripts and caches are there by then. */
const WARM_UP = 20

const SOURCE = /packages\/([a-z]+\/src\/.+\.ts)/

/**
 * @typedef {object} Journey
 * @property {number} status
 * @property {ReadonlyMap<string, readonly string[]>} files The functions that ran, by file.
 * @property {readonly string[]} promises Where each was made.
 */

const profiler = new Session()
profiler.connect()
await profiler.post('Profiler.enable')
await profiler.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
const redis = await startRedis()
const store = redisStore(`redis://127.0.0.1:${redis.port}`)
const app = express()
// Two limits, so that one server answers both an allowed and a denied request.
app.use('/allowed', rateLimit({ name: 'generous', limit: 1000, window: '1h', store }))
app.use('/denied', rateLimit({ name: 'mean', limit: 1, window: '1h', store }))
app.use((_req, res) => void res.send('Hello'))
const server = createServer(app).listen(0, '127.0.0.1')
try {
  await once(server, 'listening')
  for (let i = 0; i < WARM_UP; i++) for (const path of ['/allowed', '/denied']) await get(path)
  const tooMuch = [report(await journeyOf('/allowed', 200)), report(await journeyOf('/denied', 429))]
  process.exitCode = tooMuch.includes(true) ? 1 : 0
} finally {
  server.closeAllConnections()
  server.close()
  await store.close()
  await redis.stop()
}

/** @param {string} path */
async function get(path) {
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  const response = await fetch(`http://127.0.0.1:${port}${path}`)
  await response.text()
  return response.status
}

/**
 * @param {string} path
 * @param {number} expected
 * @returns {Promise<Journey>}
 */
async function journeyOf(path, expected) {
  await profiler.post('Profiler.takePreciseCoverage')
  /** @type {string[]} */
  const promises = []
  const stop = promiseHooks.onInit(() => void promises.push(...placeInSources()))
  const status = await get(path)
  stop()
  if (status !== expected) throw new Error(`${path} answered ${status}, where ${expected} is right`)
  const { result } = await profiler.post('Profiler.takePreciseCoverage')
  const files = new Map()
  for (const { url, functions } of result) {
    const [, file] = SOURCE.exec(url) ?? []
    if (file === undefined || file.startsWith('testing/')) continue
    const ran = functions.filter(({ functionName, ranges }) => functionName && ranges[0]?.count)
    const names = ran.map(({ functionName }) => functionName.replace(/^get /, ''))
    if (ran.length > 0) files.set(file, names)
  }
  return { status, files, promises }
}

/** The function of ours that makes a promise at this moment, if it is ours. @returns {string[]} */
function placeInSources() {
  const frames = (new Error().stack ?? '').split('\n').slice(3)
  const maker = frames.find((frame) => !/\(<anonymous>\)|node:/.test(frame)) ?? ''
  const [, file] = SOURCE.exec(maker) ?? []
  return file === undefined || file.startsWith('testing/')
    ? []
    : [`${file} ${maker.split(' (')[0]?.trim().replace(/^at /, '')}`]
}

/** @param {Journey} journey @returns {boolean} whether it is too long. */
function report({ status, files, promises }) {
  const [fileBar, promiseBar] = [`at most ${MOST_FILES}`, `at most ${MOST_PROMISES}`]
  console.log(
    `A request that is answered ${status}: ${files.size} files (${fileBar}), ${promises.length} promises (${promiseBar})`,
  )
  const width = Math.max(...[...files.keys()].map((file) => file.length))
  for (const [file, functions] of [...files].toSorted())
    console.log(`  ${file.padEnd(width)}  ${functions.join(', ')}`)
  for (const promise of promises) console.log(`  promise: ${promise}`)
  return files.size > MOST_FILES || promises.length > MOST_PROMISES
}
