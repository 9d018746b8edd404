// npm run bench -- policies [ROUNDS]: CPU of a decision by a watched policy file beside one without.
import { createServer } from 'node:http'
import { createLimiter, gcra } from '@sluice/core'
import { rateLimit } from '@sluice/express'
import { byIp } from '@sluice/http'
import { limiterFrom, limitsFrom } from '@sluice/policies'
import { watchPolicies } from '@sluice/policies/node'
import express from 'express'
import { judgeBeside } from '../figures/beside.js'
import { callerOf } from '../http/in-process/exchange.js'

/** @typedef {import('@sluice/core').Limiter} Limiter */

const BAR = 1.03
const ROUNDS = Number(process.argv[2] ?? 90)
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

const without = () => createLimiter({ name: 'api', policies })
const fromFile = () => limiterFrom(watched, 'api')
await judge('limiter.decide', 20_000, [() => deciding(without()), () => deciding(fromFile())])
await judge('limiter.consume', 20_000, [() => consuming(without()), () => consuming(fromFile())])
await judge('Express', 2500, [
  () => served([{ name: 'api', policies, key: byIp() }]),
  () => served(limitsFrom(byAddress)),
])
watched.close()
byAddress.close()

/** @param {string} what @param {number} calls @param {readonly [() => Run, () => Run]} open @typedef {(calls: number) => unknown} Run */
async function judge(what, calls, [base, other]) {
  const side = (/** @type {Run} */ run) => ({ run: () => run(calls) })
  await judgeBeside(what, [() => side(base()), () => side(other())], { calls, rounds: ROUNDS, atMost: BAR })
}

/** @param {Limiter} limiter @returns {Run} */
function deciding(limiter) {
  return (calls) => {
    for (let i = 0; i < calls; i++) void limiter.decide(KEYS[i % KEYS.length] ?? '')
  }
}

/** @param {Limiter} limiter @returns {Run} */
function consuming(limiter) {
  return async (calls) => {
    for (let i = 0; i < calls; i++) await limiter.consume(KEYS[i % KEYS.length] ?? '')
  }
}

/** @param {NonNullable<import('@sluice/express').RateLimitOptions['limits']>} limits @returns {Run} */
function served(limits) {
  const app = express()
  app.use(rateLimit({ limits }))
  app.use((_req, res) => void res.send('Hello'))
  const caller = callerOf(createServer(app))
  return async (calls) => {
    for (let i = 0; i < calls; i++) await caller.request()
  }
}
