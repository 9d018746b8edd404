// Prints the source files that one call passes through, with the functions that ran: a call of a limiter in memory, one that goes
// out, and a request from Express to Redis and back, with the promises that something of ours waits for. npm run verify -- journey
// exits with 1 above the bars.
import { createLimiter, gcra, memoryStore } from '@sluice/core'
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

/** Requests before the one that is looked at: connections, scripts and caches are there by then. */
const WARM_UP = 20
/** Calls of each row that are counted. The one with the fewest functions is shown: in another a timer of a store ran as well. */
const CALLS_COUNTED = 20
const SOURCE = /packages\/((?:core|http|machine|express|outbound)\/src\/.+\.ts)/

/**
 * @typedef {object} Row
 * @property {string} name
 * @property {() => Promise<unknown>} call
 * @property {number} [status] What it gives once it is warm.
 * @property {number} [mostFiles] That a reader of it has to open.
 * @property {number} [mostFunctions]
 * @property {number} [mostLayers] From the client's promise to that which Express's middleware waits for.
 */

const limiter = generousLimiter()
const queue = createQueue({ limiter: generousLimiter() })
const limitedFetch = limitFetch(async () => new Response('Hello'), { limiter: generousLimiter() })
const onMemory = createServer(express().use(rateLimit({ limit: 1000, window: '1h' }), greet))
await once(onMemory.listen(0, '127.0.0.1'), 'listening')
const machine = machineStore({ name: 'journey', folder: temporaryFolder('journey') })
const ofMachine = generousLimiter(machine)
await machine.ready()

/** Calls that need not wait, answered by this process. @type {readonly Row[]} */
const CALLS = [
  { name: 'consume', call: () => limiter.consume('key'), mostFiles: 11, mostFunctions: 20 },
  { name: 'acquire', call: () => limiter.acquire('key') },
  { name: 'Express on memory', call: () => get(onMemory), mostFiles: 17, mostFunctions: 50 },
  { name: 'machine, self-serving', call: () => ofMachine.consume('a'), mostFiles: 18, mostFunctions: 50 },
  { name: 'queue', call: () => queue.run(() => 'Hello'), mostFiles: 24, mostFunctions: 70 },
  { name: 'limitFetch', call: () => limitedFetch('https://api.test'), mostFiles: 26, mostFunctions: 90 },
]

const profiler = new Session()
profiler.connect()
await profiler.post('Profiler.enable')
await profiler.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
// Before there is a Redis: its connections and the timer of its deadlines run functions at any moment.
for (const row of CALLS) await look(row)
onMemory.close().closeAllConnections()
await machine.close()
const redis = await startRedis()
const client = new Redis({ port: redis.port, maxRetriesPerRequest: 0 })
const [cached, uncached, own] = [
  redisStore(client),
  redisStore(client, { denialCache: false }),
  redisStore(`redis://127.0.0.1:${redis.port}`),
]
/** By the path that each answers, with a limit of its own. */
const REQUESTS = /** @type {const} */ ([
  { name: 'allowed', limit: 1000, store: cached, status: 200, mostLayers: 3 },
  { name: 'denied', limit: 1, store: uncached, status: 429, mostLayers: 3 },
  { name: 'remembered', limit: 1, store: cached, status: 429, mostLayers: 0 },
  { name: 'url', limit: 1000, store: own, status: 200, mostLayers: 3 },
])
const app = express()
for (const { name, limit, store } of REQUESTS)
  app.use(`/${name}`, rateLimit({ name, limit, window: '1h', store }))
app.use(greet)
const server = createServer(app).listen(0, '127.0.0.1')
try {
  await once(server, 'listening')
  for (const { name, status, mostLayers } of REQUESTS)
    await look({ name: `/${name}`, call: () => get(server, `/${name}`), status, mostFiles: 26, mostLayers })
} finally {
  server.closeAllConnections()
  server.close()
  for (const store of [cached, uncached, own]) await store.close()
  client.disconnect()
  await redis.stop()
}

/** @param {import('express').Request} _req @param {import('express').Response} res */
function greet(_req, res) {
  res.send('Hello')
}

/** @param {import('node:http').Server} of */
async function get(of, path = '') {
  const { port } = /** @type {import('node:net').AddressInfo} */ (of.address())
  const response = await fetch(`http://127.0.0.1:${port}${path}`)
  await response.text()
  return response.status
}

/** Makes the one call that is looked at, and prints what ran for it: in all, and each package's share. @param {Row} row */
async function look({ name, call, status, mostFiles = Infinity, mostFunctions = Infinity, mostLayers }) {
  for (let i = 0; i < WARM_UP; i++) await call()
  await ended()
  let files = await filesPassed()
  let layers
  for (let i = 0; i < CALLS_COUNTED; i++) {
    // Where nothing is asked of promises they are not watched, as a slower call lives to see timers run.
    const watched = mostLayers === undefined ? undefined : watchLayers()
    const answered = await call()
    watched?.stop()
    if (status !== undefined && answered !== status)
      throw new Error(`${name} gave ${String(answered)}, where ${status} is right`)
    await ended()
    const passed = await filesPassed()
    if (i > 0 && functionsOf(passed) >= functionsOf(files)) continue
    files = passed
    layers = watched
  }
  const bars = [mostFiles, mostFunctions, mostLayers ?? Infinity]
  const seen = [files.length, functionsOf(files), layers?.places.size ?? 0]
  const counts = ['files', 'functions', ...(layers ? ['layers'] : [])].map((what, i) => {
    const most = bars[i] === Infinity ? '' : ` (at most ${bars[i]})`
    return `${seen[i]} ${what}${most}`
  })
  if (seen.some((count, i) => count > (bars[i] ?? 0))) process.exitCode = 1
  const shares = [...new Set(files.map((file) => file.name.split('/', 1)[0]))].map((folder) => {
    const own = files.filter((file) => file.name.startsWith(`${folder}/`))
    return `${folder} ${own.length} / ${functionsOf(own)}`
  })
  console.log(`${name}: ${counts.join(', ')}: ${shares.join(', ')}`)
  const width = Math.max(...files.map((file) => file.name.length))
  for (const file of files) console.log(`  ${file.name.padEnd(width)}  ${file.functions.join(', ')}`)
  for (const place of layers?.places.values() ?? []) console.log(`  waits for a promise of ${place}`)
}

/**
 * One whose key never fills between two calls: that path would run by how fast the machine is.
 * @param {import('@sluice/core').Store} [store]
 */
function generousLimiter(store = memoryStore()) {
  return createLimiter({ name: 'journey', policies: [gcra({ limit: 1000, window: '1h' })], store })
}

/** A call goes on for a moment after its promise has settled. */
function ended() {
  return new Promise((resolve) => setImmediate(resolve))
}

/** @param {readonly FilePassed[]} files */
function functionsOf(files) {
  return files.reduce((sum, { functions }) => sum + functions.length, 0)
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
