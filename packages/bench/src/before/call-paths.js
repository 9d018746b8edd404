// The paths of calls that other packages than core carry: decisions by a store of one machine, calls that a queue runs, and requests to
// Express without a socket. No limit is reached but where a denial is measured.
import { createServer } from 'node:http'
import express from 'express'
import { callerOf } from '../http/in-process/exchange.js'
import { expressOf, machineOf, outboundOf } from './library.js'

/** @typedef {import('./library.js').Library} Library */
/** @typedef {ReturnType<Library['createLimiter']>} Limiter */

/**
 * @typedef {object} CallPath
 * @property {number} callers Each calls again when it is answered.
 * @property {(build: Build) => Promise<(key: string) => Promise<unknown>>} open Gives the call that is measured.
 *
 * @typedef {object} Build
 * @property {string} root Of its checkout.
 * @property {string} folder For sockets; empty.
 * @property {import('./library.js').Library} library
 */

const MANY = 50_000_000

/** @type {Readonly<Record<string, CallPath>>} */
export const machinePaths = {
  'machine, the process that serves': { callers: 1, open: (build) => onMachine(build, true) },
  'machine, a process that asks': { callers: 1, open: (build) => onMachine(build, false) },
  'machine, a process that asks, 64 callers': { callers: 64, open: (build) => onMachine(build, false) },
}

/** @type {Readonly<Record<string, CallPath>>} */
export const queuePaths = {
  'createQueue().run': { callers: 1, open: queued },
  'createQueue().run, 64 callers': { callers: 64, open: queued },
  limitFetch: { callers: 1, open: fetched },
}

/** @type {Readonly<Record<string, CallPath>>} */
export const httpPaths = {
  'Express, allowed': { callers: 1, open: (build) => served(build, [MANY]) },
  'Express, denied': { callers: 1, open: (build) => served(build, [1]) },
  'Express, two limits': { callers: 1, open: (build) => served(build, [MANY, MANY]) },
}

/** Server and client are in one process, so that the CPU of both is counted. @param {Build} build @param {boolean} serves */
async function onMachine({ root, folder, library }, serves) {
  const { machineStore } = await machineOf(root)
  const common = { name: 'bench', folder, denialCache: /** @type {const} */ (false) }
  const server = machineStore({ ...common, serve: true })
  await server.ready()
  const store = serves ? server : machineStore({ ...common, serve: false })
  await store.ready()
  const limiter = limiterOf(library, { store, onStoreError: 'throw', deadline: '10s' })
  return (/** @type {string} */ key) => limiter.consume(key)
}

/** @param {Build} build */
async function queued({ root, library }) {
  const { createQueue } = await outboundOf(root)
  const queue = createQueue({ limiter: limiterOf(library) })
  const nothing = async () => undefined
  return (/** @type {string} */ key) => queue.run(nothing, { key })
}

/** @param {Build} build */
async function fetched({ root, library }) {
  const { limitFetch } = await outboundOf(root)
  const answer = async () => new Response('')
  const fetch = limitFetch(answer, { limiter: limiterOf(library) })
  return () => fetch('https://api.example.com/')
}

/** @param {Build} build @param {readonly number[]} limits */
async function served({ root, library: { gcra } }, limits) {
  const { rateLimit } = await expressOf(root)
  const options = limits.map((limit, i) => ({
    name: `bench-${i}`,
    policies: [gcra({ limit, window: '1m' })],
  }))
  const app = express()
  app.use(rateLimit(options[1] ? { limits: options } : { ...options[0] }))
  app.use((_req, res) => void res.send('Hello'))
  const { request } = callerOf(createServer(app))
  await request()
  return request
}

/**
 * @param {Library} library
 * @param {Partial<Parameters<Library['createLimiter']>[0]>} [options]
 * @returns {Limiter}
 */
function limiterOf({ createLimiter, gcra }, options) {
  return createLimiter({ ...options, name: 'bench', policies: [gcra({ limit: 50_000_000, window: '1m' })] })
}
