// Prints the source files that one call passes through, with the functions that ran: a call of a limiter in memory, one that goes
// out, and a request from Express to Redis and back, with the promises that something of ours waits for. npm run verify -- journey
// exits with 1 above the bars.
import { createLimiter, gcra } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { rateLimit } from '@sluice/express'
import { startRedis } from '@sluice/harness/redis'
import { machineStore } from '@sluice/machine'
import { createQueue, limitFetch } from '@sluice/outbound'
import express from 'express'
import { Redis } from 'ioredis'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { Session } from 'node:inspector/promises'
import { promiseHooks } from 'node:v8'
import { temporaryFolder } from '../temporary-folder.js'

/** Files that a reader of one request has to open. */
const MOST_FILES = 22
/** From the client's promise to that which Express's middleware waits for. */
const MOST_LAYERS = 3

/** Requests before the one that is looked at: connections, scripts and caches are there by then. */
const WARM_UP = 20
const SOURCE = /packages\/((?:core|http|machine|express|outbound)\/src\/.+\.ts)/

/**
 * @typedef {object} Journey
 * @property {string} path
 * @property {number} status
 * @property {number} mostLayers
 */

/** @type {readonly Journey[]} */
const JOURNEYS = [
  { path: '/allowed', status: 200, mostLayers: MOST_LAYERS },
  { path: '/denied', status: 429, mostLayers: MOST_LAYERS },
  { path: '/remembered', status: 429, mostLayers: 0 },
  { path: '/url', status: 200, mostLayers: MOST_LAYERS },
]

/**
 * @typedef {object} Call
 * @property {string} name
 * @property {() => Promise<unknown>} call
 * @property {number} [mostFiles]
 * @property {number} [mostFunctions]
 */

const limiter = generousLimiter()
const queue = createQueue({ limiter: generousLimiter() })
const limitedFetch = limitFetch(async () => new Response('Hello'), { limiter: generousLimiter() })
const onMemory = createServer(express().use(rateLimit({ limit: 1000, window: '1h' }), greet))
await once(onMemory.listen(0, '127.0.0.1'), 'listening')
const machine = machineStore({ name: 'journey', folder: temporaryFolder('journey') })
const ofMachine = generousLimiter(machine)
await machine.ready()

/** Calls that need not wait, answered by this process. @type {readonly Call[]} */
const CALLS = [
  { name: 'consume', call: () => limiter.consume('key'), mostFiles: 11, mostFunctions: 20 },
  { name: 'acquire', call: () => limiter.acquire('key') },
  { name: 'Express on memory', call: () => get('', onMemory), mostFiles: 17, mostFunctions: 50 },
  { name: 'machine, self-serving', call: () => ofMachine.consume('a'), mostFiles: 18, mostFunctions: 50 },
  { name: 'queue', call: () => queue.run(() => 'Hello'), mostFiles: 24, mostFunctions: 70 },
  { name: 'limitFetch', call: () => limitedFetch('https://api.test'), mostFiles: 26, mostFunctions: 90 },
]

const profiler = new Session()
profiler.connect()
await profiler.post('Profiler.enable')
await profiler.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
let isTooLong = false
// Before there is a Redis: its connections and the timer of its deadlines run functions at any moment.
for (const call of CALLS) if (!(await isShort(call))) isTooLong = true
onMemory.close().closeAllConnections()
await machine.close()
const redis = await startRedis()
const client = new Redis({ port: redis.port, maxRetriesPerRequest: 0 })
const stores = {
  cached: redisStore(client),
  uncached: redisStore(client, { denialCache: false }),
  own: redisStore(`redis://127.0.0.1:${redis.port}`),
}
const server = createServer(application()).listen(0, '127.0.0.1')
try {
  await once(server, 'listening')
  for (let i = 0; i < WARM_UP; i++) for (const { path } of JOURNEYS) await get(path)
  for (const journey of JOURNEYS) if (!(await isWithinBars(journey))) isTooLong = true
  process.exitCode = isTooLong ? 1 : 0
} finally {
  server.closeAllConnections()
  server.close()
  for (const store of Object.values(stores)) await store.close()
  client.disconnect()
  await redis.stop()
}

/** A path for each journey, with a limit of its own. */
function application() {
  const { cached, uncached, own } = stores
  const app = express()
  app.use('/allowed', rateLimit({ name: 'allowed', limit: 1000, window: '1h', store: cached }))
  app.use('/denied', rateLimit({ name: 'denied', limit: 1, window: '1h', store: uncached }))
  app.use('/remembered', rateLimit({ name: 'remembered', limit: 1, window: '1h', store: cached }))
  app.use('/url', rateLimit({ name: 'url', limit: 1000, window: '1h', store: own }))
  app.use(greet)
  return app
}

/** @param {import('express').Request} _req @param {import('express').Response} res */
function greet(_req, res) {
  res.send('Hello')
}

/** @param {string} path */
async function get(path, of = server) {
  const { port } = /** @type {import('node:net').AddressInfo} */ (of.address())
  const response = await fetch(`http://127.0.0.1:${port}${path}`)
  await response.text()
  return response.status
}

/** Makes the one request that is looked at, and prints what ran for it. @param {Journey} journey */
async function isWithinBars({ path, status, mostLayers }) {
  await profiler.post('Profiler.takePreciseCoverage')
  const layers = watchLayers()
  const answered = await get(path)
  layers.stop()
  if (answered !== status) throw new Error(`${path} answered ${answered}, where ${status} is right`)
  const files = await filesPassed()
  console.log(
    `${path}: ${files.length} files (at most ${MOST_FILES}), ${layers.places.size} layers (at most ${mostLayers})`,
  )
  print(files)
  for (const place of layers.places.values()) console.log(`  waits for a promise of ${place}`)
  return files.length <= MOST_FILES && layers.places.size <= mostLayers
}

/** Makes one call, and prints what ran for it: in all, and each package's share. @param {Call} row */
async function isShort({ name, call, mostFiles = Infinity, mostFunctions = Infinity }) {
  for (let i = 0; i < WARM_UP; i++) await call()
  await ended()
  await profiler.post('Profiler.takePreciseCoverage')
  await call()
  await ended()
  const files = await filesPassed()
  const count = functionsOf(files)
  const shares = [...new Set(files.map((file) => file.name.split('/', 1)[0]))].map((folder) => {
    const own = files.filter((file) => file.name.startsWith(`${folder}/`))
    return `${folder} ${own.length} / ${functionsOf(own)}`
  })
  const bars = mostFiles === Infinity ? '' : ` (at most ${mostFiles} / ${mostFunctions})`
  console.log(`${name}: ${files.length} files / ${count} functions${bars}: ${shares.join(', ')}`)
  print(files)
  return files.length <= mostFiles && count <= mostFunctions
}

/** @param {import('@sluice/core').Store} [store] */
function generousLimiter(store) {
  return createLimiter({
    policies: [gcra({ limit: 1000, window: '1s' })],
    name: 'journey',
    ...(store && { store }),
  })
}

/** A call goes on for a moment after its promise has settled. */
function ended() {
  return new Promise((resolve) => setImmediate(resolve))
}

/** @param {readonly FilePassed[]} files */
function functionsOf(files) {
  return files.reduce((sum, { functions }) => sum + functions.length, 0)
}

/** @param {readonly FilePassed[]} files */
function print(files) {
  const width = Math.max(...files.map(({ name }) => name.length))
  for (const { name, functions } of files) console.log(`  ${name.padEnd(width)}  ${functions.join(', ')}`)
}

/** The files of which a function ran since this was asked last. */
async function filesPassed() {
  const { result } = await profiler.post('Profiler.takePreciseCoverage')
  return result.map(filePassed).filter((file) => file !== undefined)
}

/** @typedef {{ readonly name: string, readonly functions: readonly string[] }} FilePassed */

/** A file of which a function ran. @param {import('node:inspector').Profiler.ScriptCoverage} coverage */
function filePassed({ url, functions }) {
  const name = SOURCE.exec(url)?.[1]
  const ran = functions.filter(({ ranges }) => ranges[0]?.count)
  if (name === undefined || ran.length === 0) return undefined
  return { name, functions: ran.map(({ functionName }) => functionName || '(anonymous)') }
}

/** Collects the promises that our sources make and that a further one of theirs is chained to. */
function watchLayers() {
  /** @type {Map<Promise<unknown>, string>} */
  const made = new Map()
  /** @type {Map<Promise<unknown>, string>} */
  const places = new Map()
  const stop = promiseHooks.onInit((promise, parent) => {
    const place = placeInSources()
    if (place === undefined) return
    made.set(promise, place)
    const waitedFor = made.get(parent)
    if (waitedFor !== undefined) places.set(parent, waitedFor)
  })
  return { places, stop }
}

/** The function of ours that makes a promise at this moment; undefined if it is another's. */
function placeInSources() {
  const frames = (new Error().stack ?? '').split('\n').slice(3)
  const maker = frames.find((frame) => !/<anonymous>|node:/.test(frame)) ?? ''
  const file = SOURCE.exec(maker)?.[1]
  return file && `${file} ${/at (?:async )?(?:new )?([^ ]+) \(/.exec(maker)?.[1] ?? ''}`.trim()
}
