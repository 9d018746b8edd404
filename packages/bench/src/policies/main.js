// npm run bench -- policies [ROUNDS]: CPU of a decision by a watched policy file beside one without, in pairs within one process, in both
// orders. Both sides are made anew for each group of rounds. Exits with 1 where the bar is missed.
import { createServer } from 'node:http'
import { createLimiter, gcra } from '@sluice/core'
import { isPromise } from '@sluice/core/internal'
import { rateLimit } from '@sluice/express'
import { byIp } from '@sluice/http'
import { limiterFrom, limitsFrom } from '@sluice/policies'
import { watchPolicies } from '@sluice/policies/node'
import express from 'express'
import { callerOf } from '../http/in-process/exchange.js'

/** @typedef {() => unknown} Call */

const BAR = 0.97
const GROUPS = 6
const KEYS = Array.from({ length: 1000 }, (_, i) => `key ${i}`)
const POLICY = /** @type {const} */ ({ limit: 50_000_000, window: '1m' })
const policies = [gcra(POLICY)]

/** @param {object} more */
const file = (more) =>
  watchPolicies(async () =>
    JSON.stringify({ limiters: { api: { policies: [{ algorithm: 'gcra', ...POLICY }], ...more } } }),
  )
const watched = file({})
const byAddress = file({ by: 'ip' })
await Promise.all([watched.ready(), byAddress.ready()])

const fromFile = () => limiterFrom(watched, 'api')
const without = () => createLimiter({ name: 'api', policies })
/** By name: what has the file, what has none, and the calls of a round. @type {Record<string, [() => Call, () => Call, number]>} */
const paths = {
  'limiter.decide': [() => deciding(fromFile()), () => deciding(without()), 20_000],
  'limiter.consume': [() => consuming(fromFile()), () => consuming(without()), 20_000],
  Express: [
    () => served(limitsFrom(byAddress)),
    () => served([{ name: 'api', policies, key: byIp() }]),
    2500,
  ],
}

let missed = 0
for (const [name, [file, none, calls]] of Object.entries(paths)) {
  const logs = await measured(file, none, calls, Number(process.argv[2] ?? 90))
  const mean = logs.reduce((sum, each) => sum + each, 0) / logs.length
  const variance = logs.reduce((sum, each) => sum + (each - mean) ** 2, 0) / (logs.length - 1)
  const [low, high] = [-2, 2].map((z) => Math.exp(mean + z * Math.sqrt(variance / logs.length)))
  const [shown, ...bounds] = [Math.exp(mean), low, high].map((each) =>
    /** @type {number} */ (each).toFixed(3),
  )
  if (/** @type {number} */ (low) < BAR) missed++
  console.log(`${name}: as fast as without a file x ${shown} [${bounds.join(', ')}], bar ${BAR}`)
}
watched.close()
byAddress.close()
process.exitCode = missed > 0 ? 1 : 0

/**
 * Logarithms of the CPU without a file, as a share of that with one.
 * @param {() => Call} file @param {() => Call} none @param {number} calls @param {number} rounds
 */
async function measured(file, none, calls, rounds) {
  const logs = []
  for (let group = 0; group < GROUPS; group++) {
    const sides = group % 2 === 0 ? [file(), none()] : [none(), file()].toReversed()
    for (let i = -3; i < rounds / GROUPS; i++) {
      const spent = [0, 0]
      for (const side of i % 2 === 0 ? [0, 1] : [1, 0])
        spent[side] = await cpuOf(/** @type {Call} */ (sides[side]), calls)
      if (i >= 0) logs.push(Math.log(/** @type {number} */ (spent[1]) / /** @type {number} */ (spent[0])))
    }
  }
  return logs
}

/** @param {Call} call @param {number} calls */
async function cpuOf(call, calls) {
  const before = process.cpuUsage()
  for (let i = 0; i < calls; i++) {
    const answer = call()
    if (isPromise(answer)) await answer
  }
  const { user, system } = process.cpuUsage(before)
  return user + system
}

/** @param {import('@sluice/core').Limiter} limiter */
function deciding(limiter) {
  let i = 0
  return () => limiter.decide(/** @type {string} */ (KEYS[i++ % KEYS.length]))
}

/** @param {import('@sluice/core').Limiter} limiter */
function consuming(limiter) {
  let i = 0
  return () => limiter.consume(/** @type {string} */ (KEYS[i++ % KEYS.length]))
}

/** @param {NonNullable<import('@sluice/express').RateLimitOptions['limits']>} limits */
function served(limits) {
  const app = express()
  app.use(rateLimit({ limits }))
  app.use((_req, res) => void res.send('Hello'))
  return callerOf(createServer(app)).request
}
