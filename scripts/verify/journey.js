// Prints the source files that one call passes through, with the functions that ran: a call of a limiter in memory, one that goes
// out, and a request from Express to Redis and back, with the promises that something of ours waits for. It counts how often
// functions are entered, how often from another room, and how often that leads back to a room left before (verify/journey).
// npm run verify -- journey exits with 1 above the bars.
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
import { promiseHooks } from 'node:v8'
import { temporaryFolder } from '../temporary-folder.js'
import { countsOf, noteEntries } from './journey/entries.js'

/** Requests before the one that is looked at: connections, scripts and caches are there by then. */
const WARM_UP = 20
/** Calls of each row that are counted. The one with the fewest entries is shown: in another something else ran as well. */
const CALLS_COUNTED = 100
const SOURCE = /packages\/((?:core|http|machine|express|outbound)\/src\/.+\.ts)/

/**
 * The most that a row may count, each if it is there: `files` that a reader has to open, `functions`, entries of them, crossings
 * between rooms, returns to one, and `layers`, the promises from the client's to that which Express's middleware waits for.
 * @typedef {{ [what in 'files' | 'functions' | 'entries' | 'crossings' | 'returns' | 'layers']?: number }} Bars
 */

/**
 * @typedef {object} Row
 * @property {string} name
 * @property {() => Promise<unknown>} call
 * @property {number} [status] What it gives once it is warm.
 * @property {Bars} [most]
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
  {
    name: 'consume',
    call: () => limiter.consume('key'),
    most: { files: 11, functions: 20, entries: 19, crossings: 12, returns: 2 },
  },
  { name: 'acquire', call: () => limiter.acquire('key') },
  {
    name: 'Express on memory',
    call: () => get(onMemory),
    most: { files: 17, functions: 52, entries: 57, crossings: 38, returns: 21 },
  },
  { name: 'machine, self-serving', call: () => ofMachine.consume('a'), most: { files: 18, functions: 50 } },
  {
    name: 'queue',
    call: () => queue.run(() => 'Hello'),
    most: { files: 24, functions: 70, entries: 97, crossings: 68, returns: 46 },
  },
  {
    name: 'limitFetch',
    call: () => limitedFetch('https://api.test'),
    most: { files: 26, functions: 91, entries: 107, crossings: 75, returns: 50 },
  },
]

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
const onRedis = generousLimiter(cached)
/** By the path that each answers, with a limit of its own. */
const REQUESTS = /** @type {const} */ ([
  {
    name: 'allowed',
    limit: 1000,
    store: cached,
    status: 200,
    most: { layers: 3, entries: 125, crossings: 58, returns: 36 },
  },
  { name: 'denied', limit: 1, store: uncached, status: 429, most: { layers: 3 } },
  { name: 'remembered', limit: 1, store: cached, status: 429, most: { layers: 0 } },
  { name: 'url', limit: 1000, store: own, status: 200, most: { layers: 3 } },
])
const app = express()
for (const { name, limit, store } of REQUESTS)
  app.use(`/${name}`, rateLimit({ name, limit, window: '1h', store }))
app.use(greet)
const server = createServer(app).listen(0, '127.0.0.1')
try {
  await once(server, 'listening')
  await look({
    name: 'consume on Redis',
    call: () => onRedis.consume('key'),
    most: { layers: 0, entries: 90, crossings: 36, returns: 22 },
  })
  for (const { name, status, most } of REQUESTS)
    await look({
      name: `/${name}`,
      call: () => get(server, `/${name}`),
      status,
      most: { files: 26, ...most },
    })
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
async function look({ name, call, status, most = {} }) {
  for (let i = 0; i < WARM_UP; i++) await call()
  await ended()
  /** @type {readonly import('./journey/entries.js').Entry[] | undefined} */
  let fewest
  let layers
  const startTimers = stopTimers()
  for (let i = 0; i < CALLS_COUNTED; i++) {
    // Where nothing is asked of promises they are not watched, as a slower call lives to see timers run.
    const watched = most.layers === undefined ? undefined : watchLayers()
    const entriesNoted = noteEntries()
    const answered = await call()
    watched?.stop()
    if (status !== undefined && answered !== status)
      throw new Error(`${name} gave ${String(answered)}, where ${status} is right`)
    await ended()
    const noted = entriesNoted()
    if (fewest && noted.length >= fewest.length) continue
    fewest = noted
    layers = watched
  }
  startTimers()
  const files = filesOf(fewest ?? [])
  const seen = {
    files: files.size,
    functions: functionsOf([...files.values()]),
    ...countsOf(fewest ?? []),
    ...(layers && { layers: layers.places.size }),
  }
  const counts = /** @type {[keyof Bars, number][]} */ (Object.entries(seen)).map(([what, count]) => {
    if (count > (most[what] ?? Infinity)) process.exitCode = 1
    return `${count} ${what}${most[what] === undefined ? '' : ` (at most ${most[what]})`}`
  })
  const shares = [...new Set([...files.keys()].map(folderOf))].map((folder) => {
    const own = [...files].filter(([file]) => folderOf(file) === folder)
    return `${folder} ${own.length} / ${functionsOf(own.map(([, functions]) => functions))}`
  })
  console.log(`${name}: ${counts.join(', ')}: ${shares.join(', ')}`)
  const width = Math.max(...[...files.keys()].map((file) => file.length))
  for (const [file, functions] of files)
    console.log(`  ${file.padEnd(width)}  ${[...functions.values()].join(', ')}`)
  for (const place of layers?.places.values() ?? []) console.log(`  waits for a promise of ${place}`)
}

/**
 * One whose key never fills between two calls: that path would run by how fast the machine is.
 * @param {import('@sluice/core').Store} [store]
 */
function generousLimiter(store = memoryStore()) {
  return createLimiter({ name: 'journey', policies: [gcra({ limit: 1000, window: '1h' })], store })
}

/**
 * From here on a timer that is set never fires, until the returned function is called: on a slow machine one fires in each call,
 * and the next call sets it again.
 */
function stopTimers() {
  const { setTimeout } = globalThis
  const setNothing = () => ({ ref() {}, unref() {} })
  Object.assign(globalThis, { setTimeout: setNothing })
  return () => void Object.assign(globalThis, { setTimeout })
}

/** A call goes on for a moment after its promise has settled. */
function ended() {
  return new Promise((resolve) => setImmediate(resolve))
}

/** The names of the functions that were entered, by file. @param {readonly import('./journey/entries.js').Entry[]} entries */
function filesOf(entries) {
  /** @type {Map<string, Map<number, string>>} */
  const files = new Map()
  for (const { of } of entries) {
    const functions = files.get(of.file) ?? new Map()
    files.set(of.file, functions.set(of.start, of.name || '(anonymous)'))
  }
  return files
}

/** @param {readonly Map<number, string>[]} files */
function functionsOf(files) {
  return files.reduce((sum, { size }) => sum + size, 0)
}

/** The package of a file. @param {string} file */
function folderOf(file) {
  return file.split('/', 1)[0]
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
