import { createLimiter, type Decision, gcra, type Limiter } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { command, type RedisServer, startRedis, until } from '@sluice/harness/redis'
import type { Outcome, Row } from '../row.js'

/** More calls in one tick than may be on the wire: a healthy Redis decides all of them. */
export const row: Row = {
  number: 30,
  fault: 'burst on a healthy store',
  timed: true,
  warnings: ['STORE_DEGRADED'],
  run: burst,
}

const CALLS = 5000
const LIMIT = 100
/** Calls of a store that may be on the wire. */
const MOST_SENT = 1000
const FEW_CALLS = 500
const BUSY_MS = 80
/** How long Redis needs for them, once they are written. The deadline is 50 ms. */
const ANSWER_MS = 10

/**
 * Makes many calls at once on a store that is well. Passes if the store decides all of them and exactly the limit is admitted,
 * and few are sent to one that stands still. `share` is the part of the full load, 0 to 1.
 */
async function burst(share: number): Promise<Outcome> {
  const server = await startRedis()
  const store = redisStore({ host: server.host, port: server.port })
  const limiters: Limiter[] = []
  const open = (name: string, deadline?: '1s'): Limiter => {
    const policies = [gcra({ limit: LIMIT, window: '1d' })]
    const limiter = createLimiter({ name, policies, store, ...(deadline && { deadline }) })
    limiters.push(limiter)
    return limiter
  }
  try {
    await store.ready()
    // The process is up: what a fresh one does with its first calls is row 31.
    for (let i = 0; i < 10; i++) await callsOf(open('warm'), (key) => `key ${key % 500}`)
    const times = Math.max(1, Math.round(10 * share))
    const oneKey: number[] = []
    let degraded = 0
    for (let i = 0; i < times; i++) {
      const decisions = await callsOf(open('one key'), () => `key ${i}`)
      oneKey.push(decisions.filter(({ allowed }) => allowed).length)
      degraded += degradedOf(decisions)
    }
    const manyKeys = await callsOf(open('many keys', '1s'), (i) => `key ${i}`)
    const busy = degradedOf(await callsBeforeBusyTime(server, open('busy')))
    const sent = await sentToOneThatStandsStill(server, open('silent'))
    const pass =
      oneKey.every((admitted) => admitted === LIMIT) &&
      degraded === 0 &&
      degradedOf(manyKeys) === 0 &&
      busy === 0 &&
      sent <= MOST_SENT
    const figure =
      `${CALLS} calls in one tick, limit ${LIMIT}: admitted ${[...new Set(oneKey)].join(', ')} in ${times} bursts on one ` +
      `key, ${degraded} degraded; on ${CALLS} keys ${degradedOf(manyKeys)} degraded; ` +
      `${FEW_CALLS} calls of a process that is busy for ${BUSY_MS} ms then, answered in ${ANSWER_MS} ms, ${busy} degraded; while Redis stood still ${sent} sent`
    return { pass, figure }
  } finally {
    for (const limiter of limiters) await limiter.close()
    await store.close()
    await server.stop()
  }
}

/** Makes all calls of a burst at once; `keyOf` gives the key of each. */
function callsOf(limiter: Limiter, keyOf: (i: number) => string): Promise<Decision[]> {
  return Promise.all(Array.from({ length: CALLS }, (_, i) => limiter.consume(keyOf(i))))
}

/** The event loop stands still for longer than the deadline before the last calls are written. */
function callsBeforeBusyTime(server: RedisServer, limiter: Limiter): Promise<Decision[]> {
  server.pause()
  const calls = Array.from({ length: FEW_CALLS }, (_, i) => limiter.consume(`key ${i}`))
  const end = performance.now() + BUSY_MS
  while (performance.now() < end);
  setTimeout(() => server.resume(), ANSWER_MS)
  return Promise.all(calls)
}

/** How many decisions were not made by the store. */
function degradedOf(decisions: readonly Decision[]): number {
  return decisions.filter((decision) => decision.degraded !== undefined).length
}

/**
 * Makes calls, each on a key of its own, to a Redis that stands still. Returns how many it carries out once it goes on:
 * those that were sent.
 */
async function sentToOneThatStandsStill(server: RedisServer, limiter: Limiter): Promise<number> {
  await command(server, 'FLUSHALL')
  server.pause()
  await callsOf(limiter, (i) => `key ${i}`)
  server.resume()
  let before = -1
  let executed = await command<number>(server, 'DBSIZE')
  await until('Redis to have carried out what was sent', async () => {
    before = executed
    executed = await command<number>(server, 'DBSIZE')
    return executed > 0 && executed === before
  })
  return executed
}
