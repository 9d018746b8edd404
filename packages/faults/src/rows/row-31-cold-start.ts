import { createLimiter, gcra } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { Redis } from 'ioredis'
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { promisify } from 'node:util'
import { onSources } from '@sluice/harness/processes'
import { pause, startProxy, startRedis } from '@sluice/harness/redis'
import { startMember } from '../fleet.js'
import type { FirstCalls } from '../workers/first-call.js'
import type { HandedInResult } from '../workers/handed-in.js'
import { Load } from '../load.js'
import { DEADLINE_MS, together } from '../outage.js'
import type { Outcome, Row } from '../row.js'

/** The first calls of a process wait until it is connected, and no longer than `startTimeout`. */
export const row: Row = {
  number: 31,
  fault: 'cold start',
  timed: true,
  warnings: ['STORE_DEGRADED'],
  run: start,
}

const PROGRAM = 'packages/faults/src/workers/first-call.ts'
const PROCESSES = 20
const START_MS = 1000
const GRACE_MS = 50
const SLOW_MS = 300
/** Where `npm run verify -- runtimes` installs the newer version of Node. */
const NODE_24 = 'packages/harness/runtimes/node_modules/node-24/bin/node'

/**
 * Starts processes anew and makes their first calls at once. Passes if Redis decides these, also where connecting is slow.
 * `share` is the part of the full load, 0 to 1.
 */
async function start(share: number): Promise<Outcome> {
  const processes = Math.max(2, Math.round(PROCESSES * share))
  const outcomes = [await freshProcesses(process.execPath, processes)]
  if (existsSync(NODE_24)) outcomes.push(await freshProcesses(resolve(NODE_24), processes))
  else outcomes.push({ pass: true, figure: 'Node 24 is not installed (npm run verify -- runtimes)' })
  outcomes.push(await slowConnection('a connection of its own'), await slowConnection('a client handed in'))
  outcomes.push(await handedIn())
  for (const scheme of ['redis', 'rediss'] as const) outcomes.push(await blackHole(scheme))
  return together(outcomes)
}

/** Starts a process so many times under one version of Node. Passes if its first calls were always decided by Redis. */
async function freshProcesses(program: string, times: number): Promise<Outcome> {
  const run = promisify(execFile)
  const server = await startRedis()
  try {
    const { stdout: version } = await run(program, ['--version'])
    const undecided: string[] = []
    let slowestMs = 0
    for (let i = 0; i < times; i++) {
      const args = [...onSources(), PROGRAM, `redis://${server.host}:${server.port}`]
      const { stdout } = await run(program, args, { timeout: 20_000 })
      const { degraded, ms } = JSON.parse(stdout) as FirstCalls
      const why = degraded.filter((each) => each !== 'no')
      if (why.length > 0) undecided.push(`${why.join(', ')} after ${ms.toFixed(0)} ms`)
      slowestMs = Math.max(slowestMs, ms)
    }
    const decided = `${times - undecided.length} of ${times} fresh processes`
    return {
      pass: undecided.length === 0,
      figure:
        `Node ${version.trim()}: the first calls decided by Redis in ${decided}, after ${slowestMs.toFixed(0)} ms at most` +
        (undecided.length === 0 ? '' : ` (${undecided.join('; ')})`),
    }
  } finally {
    await server.stop()
  }
}

/** Makes the first calls of a store whose connection takes longer than the deadline. Passes if Redis decides all of them. */
async function slowConnection(kind: 'a connection of its own' | 'a client handed in'): Promise<Outcome> {
  const server = await startRedis()
  const proxy = await startProxy(server)
  proxy.blackHole()
  const to = { host: proxy.host, port: proxy.port }
  const client = kind === 'a client handed in' ? new Redis({ ...to, maxRetriesPerRequest: 0 }) : undefined
  const store = redisStore(client ?? to)
  const policies = [gcra({ limit: 1000, window: '1s' })]
  const limiter = createLimiter({ name: 'slow', policies, store, deadline: DEADLINE_MS })
  const calls = Array.from({ length: 20 }, (_, i) => limiter.consume(`key ${i}`))
  await pause(SLOW_MS)
  await proxy.heal()
  const decided = (await Promise.all(calls)).filter(({ degraded }) => degraded === undefined).length
  await limiter.close()
  await store.close()
  client?.disconnect()
  await proxy.close()
  await server.stop()
  const figure = `${kind}, connected after ${SLOW_MS} ms: ${decided} of ${calls.length} first calls decided by Redis`
  return { pass: decided === calls.length, figure }
}

/** Four processes call at once over clients that connect for longer than a deadline: Redis decides all, and admits the limit. */
export async function handedIn(): Promise<Outcome> {
  const server = await startRedis()
  const proxy = await startProxy(server)
  const members = await Promise.all(Array.from({ length: 4 }, () => startMember(HANDED_IN, resolve('.'))))
  try {
    proxy.blackHole()
    const { host, port } = proxy
    await Promise.all(members.map((member) => member.prepare({ host, port })))
    const calls = Promise.all(members.map((member) => member.go()))
    while (proxy.counts.connections < 3 * members.length) await pause(10)
    await pause(2500) // longer than the deadline
    await proxy.heal()
    const results = (await calls) as HandedInResult[]
    const wrong = Object.keys(results[0]!).flatMap((name) => {
      const decisions = results.flatMap((result) => result[name]!)
      const locally = decisions.filter(({ by }) => by !== 'Redis').length
      const admitted = decisions.filter(({ allowed }) => allowed).length
      const isRight = locally === 0 && admitted === 10 && decisions.length === 20
      return isRight
        ? []
        : [`${name}: ${locally} of ${decisions.length} decided locally, ${admitted} of 10 admitted`]
    })
    const figure = `first calls of ${members.length} processes over clients handed in: ${wrong.join(', ') || 'all decided by Redis'}`
    return { pass: wrong.length === 0, figure }
  } finally {
    await Promise.all(members.map((member) => member.end()))
    await proxy.close()
    await server.stop()
  }
}

const HANDED_IN = 'packages/faults/src/workers/handed-in.ts'

/** A network in which all that is sent vanishes. Over TLS the connection is never made, and without TLS it is, and nothing answers. */
async function blackHole(scheme: 'redis' | 'rediss'): Promise<Outcome> {
  const server = await startRedis()
  const proxy = await startProxy(server)
  proxy.blackHole()
  const store = redisStore(`${scheme}://${proxy.host}:${proxy.port}`)
  const policies = [gcra({ limit: 1000, window: '1s' })]
  const limiter = createLimiter({ name: 'hole', policies, store, deadline: DEADLINE_MS })
  const began = performance.now()
  const load = new Load(limiter, 500)
  await pause(3 * START_MS)
  await load.stop()
  await limiter.close()
  await store.close()
  await proxy.close()
  await server.stop()
  const first = load.p99(began, began + START_MS)
  const later = load.p99(began + START_MS, Infinity)
  const [firstBar, laterBar] = [START_MS + GRACE_MS, DEADLINE_MS + GRACE_MS]
  return {
    pass: first <= firstBar && later <= laterBar && load.errors.length === 0,
    figure:
      `a black hole by ${scheme}: ${load.calls.length} calls, p99 ${first.toFixed(0)} ms in the first second (bar ${firstBar}), ` +
      `${later.toFixed(0)} ms after (bar ${laterBar})${load.errors[0] ? `; ${load.errors[0]}` : ''}`,
  }
}
