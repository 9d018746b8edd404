// One figure of main.js, in a process of its own: what a call takes without a listener and how much more with one, or the
// number of series and its bound. Arguments: what listens, and the workload.
import { createLimiter, fixedWindow, gcra, memoryStore } from '@sluice/core'
import { rateLimit } from '@sluice/express'
import { observe, prometheusName, INSTRUMENTS, topKeys } from '@sluice/metrics'
import express from 'express'
import { createServer } from 'node:http'
import promClient from 'prom-client'
import { callerOf } from '../http/in-process/exchange.js'
import { pairs } from './pairs.js'

const BLOCK = 20_000
const REQUESTS = 500
const [variant = '', workload = ''] = process.argv.slice(2)

/** @typedef {ReturnType<typeof createLimiter>} Limiter */
/** @type {Readonly<Record<string, (limiter: Limiter) => unknown>>} */
const LISTENERS = {
  nothing: () => {},
  observed: (limiter) => observe(limiter, { prometheus: promClient }),
  'top keys': (limiter) => topKeys(limiter),
}

if (variant === 'series') console.log(JSON.stringify(await series()))
else if (workload === 'a request of Express') console.log(JSON.stringify(await requests()))
else console.log(JSON.stringify(await decisions()))

/** Two limiters share name, shapes and store, and so their state; the second is listened to. */
function limiters(limit = 1_000_000) {
  const store = memoryStore({ maxKeys: 8_000_000 })
  const open = () => createLimiter({ name: 'api', policies: [gcra({ limit, window: '1h' })], store })
  const [off, on] = [open(), open()]
  LISTENERS[variant]?.(on)
  return { off, on }
}

async function decisions() {
  const { off, on } = limiters(workload === '10,000 keys in turn, denied' ? 50 : 1_000_000)
  const keys = Array.from({ length: workload === 'one key, allowed' ? 1 : 10_000 }, (_, i) => `user:${i}`)
  let [next, made] = [0, 0]
  const isFresh = workload === 'all keys new'
  /** @type {string[]} */
  let fresh = []
  const decide = (/** @type {Limiter} */ limiter) => (/** @type {number} */ calls) => {
    for (let i = 0; i < calls; i++)
      void limiter.decide(isFresh ? (fresh[i] ?? '') : (keys[next++ % keys.length] ?? ''))
  }
  for (const limiter of [off, on])
    for (let i = 0; i < 1_000_000; i++) void limiter.decide(keys[i % keys.length] ?? '')
  const made20k = () => Array.from({ length: BLOCK }, () => `new:${made++}`)
  for (let i = 0; isFresh && i < 40; i++) {
    fresh = made20k()
    decide(i % 2 === 0 ? off : on)(BLOCK)
  }
  return pairs(BLOCK, decide(off), decide(on), () => isFresh && (fresh = made20k()))
}

/** As `npm run bench -- http` measures it: without a socket. */
async function requests() {
  const { off, on } = limiters()
  const callers = [off, on].map((limiter) => {
    const app = express()
    app.use(rateLimit({ limiter }))
    app.get('/', (_req, res) => void res.send('ok'))
    return callerOf(createServer(app))
  })
  const send = (/** @type {number} */ side) => async (/** @type {number} */ calls) => {
    for (let i = 0; i < calls; i++) await callers[side]?.request()
  }
  for (let i = 0; i < 30; i++) await send(i % 2)(REQUESTS)
  return pairs(REQUESTS, send(0), send(1))
}

async function series() {
  const windows = /** @type {const} */ (['1s', '1m', '1h', '2h', '1d'])
  const policies = windows.map((window) => fixedWindow({ limit: 3, window, name: `per ${window}` }))
  for (let l = 0; l < 10; l++) {
    const limiter = createLimiter({ name: `l${l}`, policies, store: memoryStore({ maxKeys: 100_000 }) })
    observe(limiter, { prometheus: promClient })
    for (let i = 0; i < 200_000; i++) void limiter.decide(`user:${l}:${i >> 1}`, { cost: 2 })
    await limiter.close()
  }
  const metric = promClient.register.getSingleMetric(prometheusName(INSTRUMENTS.decisions))
  const values = (await metric?.get())?.values ?? []
  return [values.length, 10 * 5 * 24]
}
