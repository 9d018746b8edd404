// What acts cost live traffic: four processes call a limiter at an even pace, in turns alone and while an operator runs the commands on
// the store without a pause, over 20,000 keys. Exit 1 where the p99 of decisions beside acts, the median of its rounds, is above all
// rounds without: npm run verify -- acts-under-load.
import { median, quantile } from '@sluice/harness/figures'
import { startPostgres } from '@sluice/harness/postgres'
import { startRedis } from '@sluice/harness/redis'
import { createLimiter, gcra } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { postgresStore } from '@sluice/postgres'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { setPriority } from 'node:os'
import { fileURLToPath } from 'node:url'

const PROCESSES = 4
const ROUNDS = 9
const ROUND_MS = 2500
const KEYS = 20_000
const SECRET = 'b7e151628aed2a6abf7158809cf4f3c7'

/** Measures the load on a store, and returns whether acts cost no more than its own spread. @param {string} name @param {string} url */
async function load(name, url) {
  await fill(url)
  const start = (
    /** @type {string} */ file,
    /** @type {string[]} */ args,
    /** @type {'inherit' | 'ignore'} */ output,
  ) =>
    fork(fileURLToPath(new URL(file, import.meta.url)), args, {
      env: { ...process.env, SLUICE_STORE: url, SLUICE_SECRET: SECRET },
      execArgv: [],
      stdio: ['ignore', output, output, 'ipc'],
    })
  const callers = Array.from({ length: PROCESSES }, () => start('caller.js', [url, SECRET], 'inherit'))
  await Promise.all(callers.map((child) => once(child, 'message')))
  const operator = start('operator.js', [], 'ignore')
  // As on a machine of its own: what counts here is what the store has to do beside.
  setPriority(operator.pid ?? 0, 19)
  // Limits are known once they are posted.
  await round(callers, 12_000)
  let ran = 0
  /** @type {[alone: number[], beside: number[]]} */
  const p99s = [[], []]
  for (let i = 0; i < ROUNDS; i++) {
    p99s[0].push(await round(callers, ROUND_MS))
    operator.send('begin')
    p99s[1].push(await round(callers, ROUND_MS))
    operator.send('end')
    ran += (await once(operator, 'message'))[0]
  }
  for (const child of [...callers, operator]) child.disconnect()
  const [alone, beside] = p99s
  const shown = (/** @type {number[]} */ all) =>
    `${median(all).toFixed(1)} ms (${Math.min(...all).toFixed(1)} to ${Math.max(...all).toFixed(1)})`
  const isWithin = median(beside) <= Math.max(...alone)
  console.log(
    `${name}: p99 of decisions ${shown(alone)} alone, ${shown(beside)} beside acts; ${ran} commands in ${ROUNDS} rounds; ${isWithin ? 'within its spread' : 'ABOVE ITS SPREAD'}`,
  )
  return isWithin
}

/** The p99 of the decisions of all processes in a round, in milliseconds. @param {import('node:child_process').ChildProcess[]} callers @param {number} ms */
async function round(callers, ms) {
  const took = await Promise.all(
    callers.map((child) => {
      child.send({ ms })
      return once(child, 'message')
    }),
  )
  return quantile(
    took.flatMap(([all]) => all),
    0.99,
  )
}

/** Has other callers counted, so that there is something to look through. @param {string} url */
async function fill(url) {
  const store = url.startsWith('redis') ? redisStore(url) : postgresStore(url)
  const policies = [gcra({ limit: 1_000_000, window: '1h' })]
  const limiter = createLimiter({ name: 'api', policies, store, onStoreError: 'throw', deadline: '1m' })
  for (let i = 0; i < KEYS; i += 500)
    await Promise.all(Array.from({ length: 500 }, (_, n) => limiter.consume(`other:${i + n}`)))
  await limiter.close()
  await store.close()
}

const [redis, postgres] = await Promise.all([startRedis(), startPostgres()])
const results = [
  await load('Redis', `redis://${redis.host}:${redis.port}`),
  await load('Postgres', postgres.url),
]
await Promise.all([redis.stop(), postgres.stop()])
process.exitCode = results.every(Boolean) ? 0 : 1
