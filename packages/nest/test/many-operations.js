// Measures what the guard costs one GraphQL request of 12,000 operations: its own CPU, in milliseconds, the best of ten
// rounds, a line for each case; exit 1 when one reaches the bound. A process of its own, on the build: in Jest every global costs a call.
import 'reflect-metadata'
import { ExecutionContextHost } from '@nestjs/core/internal'
import { Test } from '@nestjs/testing'
import { createLimiter, memoryStore, slidingLog } from '@sluice/core'
import { RateLimitGuard, RateLimitModule } from '@sluice/nest'
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'

class Resolver {}
function resolve() {}

const OPERATIONS = 12_000
const ROUNDS = 10
const MOST_MS = 60

/** @typedef {{ canActivate(context: import('@nestjs/common').ExecutionContext): unknown }} Guard */
/** @typedef {import('@sluice/nest').RateLimitOptions} Options */

/** @type {[string, number, Options][]} */
const CASES = [
  ['allowed', OPERATIONS, {}],
  ['denied', 1, {}],
  ['allowed, IETF headers', OPERATIONS, { headers: ['x-ratelimit', 'ietf'] }],
  ['denied, IETF headers', 1, { headers: ['x-ratelimit', 'ietf'] }],
  ['allowed, charge by outcome', OPERATIONS, { shouldCharge: () => true }],
]

const refusal = new Error('denied')
/** What the measurement itself takes. */
const idle = {
  allowed: await bestOf({ canActivate: () => true }),
  denied: await bestOf({ canActivate: () => Promise.reject(refusal) }),
}
/** @type {Record<string, number>} */
const figures = {}
for (const [name, limit, options] of CASES) {
  const ms = await bestOf(await guardOf(limit, options))
  figures[name] = ms - (limit === 1 ? idle.denied : idle.allowed)
}
for (const [what, ms] of Object.entries(figures)) console.log(`${ms.toFixed(1).padStart(6)} ms  ${what}`)
process.exitCode = Object.values(figures).some((ms) => ms >= MOST_MS) ? 1 : 0
process.exit()

/**
 * @param {number} limit
 * @param {Options} options
 * @returns {Promise<Guard>}
 */
async function guardOf(limit, options) {
  const policies = [slidingLog({ limit, window: '1m' })]
  const limiter = createLimiter({ name: 'operations', policies, store: memoryStore({ clock: () => 0 }) })
  const imports = [RateLimitModule.forRoot({ limits: [{ limiter, ...options }] })]
  const module = await Test.createTestingModule({ imports }).compile()
  await module.init()
  return module.get(RateLimitGuard)
}

/** @param {Guard} guard */
async function bestOf(guard) {
  let best = Infinity
  for (let round = 0; round < ROUNDS; round++) {
    const runs = requestFrom(`192.0.2.${round}`)
    const before = process.cpuUsage()
    await Promise.all(runs.map((run) => outcomeOf(guard, run)))
    const { user, system } = process.cpuUsage(before)
    best = Math.min(best, (user + system) / 1000)
  }
  return best
}

/**
 * @param {Guard} guard
 * @param {import('@nestjs/common').ExecutionContext} run
 */
async function outcomeOf(guard, run) {
  try {
    return await guard.canActivate(run)
  } catch (error) {
    return error
  }
}

/**
 * The runs of one request, of another caller each time, which begins with a full allowance.
 * @param {string} remoteAddress
 */
function requestFrom(remoteAddress) {
  const req = new IncomingMessage(
    Object.defineProperty(new Socket(), 'remoteAddress', { value: remoteAddress }),
  )
  const res = new ServerResponse(req)
  return Array.from({ length: OPERATIONS }, () => {
    const run = new ExecutionContextHost([undefined, {}, { req, res }, { path: {} }], Resolver, resolve)
    run.setType('graphql')
    return run
  })
}
