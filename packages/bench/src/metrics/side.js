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
/** Series, as docs/metrics.md has them: decisions, evaluations, utilization, limit, window; warnings, evicted, healed, waiting. */
const OF_POLICY = 24 + 2 + 6 + 1 + 1
const OF_LIMITER = 51 + 1 + 1 + 1
const [variant = '', workload = ''] = process.argv.slice(2)

/** @typedef {ReturnType<typeof createLimiter>} Limiter */
/** The functions that begin to listen; each returns a function that ends it. @type {Readonly<Record<string, (limiter: Limiter) => () => void>>} */
const LISTENERS = {
  nothing: () => () => {},
  observed: (limiter) => observe(limiter, { prometheus: promClient }),
  'top keys': (limiter) => {
    const top = topKeys(limiter)
    return () => top.stop()
  },
}

const listen = LISTENERS[variant] ?? (() => () => {})

if (variant === 'series') console.log(JSON.stringify(await series()))
else if (workload === 'a request of Express') console.log(JSON.stringify(await requests()))
else console.log(JSON.stringify(await decisions()))

function openLimiter(limit = 1_000_000) {
  const store = memoryStore({ maxKeys: 8_000_000 })
  return createLimiter({ name: 'api', policies: [gcra({ limit, window: '1h' })], store })
}

async function decisions() {
  const limiter = openLimiter(workload === '10,000 keys in turn, denied' ? 50 : 1_000_000)
  const keys = Array.from({ length: workload === 'one key, allowed' ? 1 : 10_000 }, (_, i) => `user:${i}`)
  let [next, made] = [0, 0]
  const isFresh = workload === 'all keys new'
  /** @type {string[]} */
  let fresh = []
  const decide = (/** @type {number} */ calls) => {
    for (let i = 0; i < calls; i++)
      void limiter.decide(isFresh ? (fresh[i] ?? '') : (keys[next++ % keys.length] ?? ''))
  }
  const made20k = () => Array.from({ length: BLOCK }, () => `new:${made++}`)
  const prepare = () => isFresh && (fresh = made20k())
  return pairs(BLOCK, decide, () => listen(limiter), prepare)
}

/** As `npm run bench -- http` measures it: without a socket. */
async function requests() {
  const limiter = openLimiter()
  const app = express()
  app.use(rateLimit({ limiter }))
  app.get('/', (_req, res) => void res.send('ok'))
  const caller = callerOf(createServer(app))
  const send = async (/** @type {number} */ calls) => {
    for (let i = 0; i < calls; i++) await caller.request()
  }
  return pairs(REQUESTS, send, () => listen(limiter))
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
  const counts = Object.values(INSTRUMENTS).map(async (instrument) => {
    const metric = promClient.register.getSingleMetric(prometheusName(instrument))
    return (await metric?.get())?.values.length ?? 0
  })
  const all = (await Promise.all(counts)).reduce((sum, count) => sum + count, 0)
  return {
    decisions: await counts[0],
    mostDecisions: 10 * 5 * 24,
    all,
    most: 10 * (5 * OF_POLICY + OF_LIMITER),
  }
}
