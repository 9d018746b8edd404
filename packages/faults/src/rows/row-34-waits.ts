import { Redis } from 'ioredis'
import { resolve } from 'node:path'
import { createLimiter, type Decision, fixedWindow, gcra, type Limiter, type Store } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { pause, type RedisServer, startProxy, startRedis } from '@sluice/harness/redis'
import { startMember } from '../fleet.js'
import { together } from '../outage.js'
import type { Outcome, Row } from '../row.js'
import type { TurnsJob, TurnsResult } from '../workers/taking-turns.js'

/**
 * Callers who may wait for seconds wait through trouble of milliseconds, and none is booked twice for it. A process
 * that was busy serves the calls that wait in it in the order of their turns.
 */
export const row: Row = {
  number: 34,
  fault: 'waits through a stall',
  warnings: ['STORE_DEGRADED', 'STORE_RECOVERED'],
  run: waitThrough,
}

const WAITING = 80
const STILL_MS = 300
const MAX_WAIT_MS = 20_000
/** The second counts what was booked. */
const POLICIES = [
  gcra({ limit: 800, window: '1s', burst: 1 }),
  fixedWindow({ limit: 1_000_000, window: '365d' }),
]

/**
 * Lets calls wait for their turn while Redis stalls, connections break and processes are busy. Passes if all are served in
 * time and in order, and charged once, but for one more for each broken connection. `share` is the part of the full load, 0 to
 * 1.
 */
async function waitThrough(share: number): Promise<Outcome> {
  const server = await startRedis()
  try {
    return together([
      await stalls(server, Math.max(2, Math.round(50 * share))),
      await brokenConnections(server, Math.max(2, Math.round(20 * share))),
      await busyProcess(Math.max(5, Math.round(100 * share))),
      await busyProcesses(server, Math.max(500, Math.round(1250 * share))),
    ])
  } finally {
    await server.stop()
  }
}

/**
 * Redis stands still: half of the calls are under way, the others come meanwhile. The client waits for replies however long
 * they take on a busy machine.
 */
async function stalls(server: RedisServer, times: number): Promise<Outcome> {
  const client = new Redis({ host: server.host, port: server.port, maxRetriesPerRequest: 0 })
  const store = redisStore(client)
  await store.ready()
  const tally = new Tally(store)
  for (let i = 0; i < times; i++) {
    const before = tally.begin(WAITING / 2, `stall ${i}`)
    server.pause()
    const meanwhile = tally.begin(WAITING / 2, `stall ${i}`)
    await pause(STILL_MS)
    server.resume()
    await Promise.all([...before, ...meanwhile])
    await tally.count(`stall ${i}`)
  }
  await tally.end()
  client.disconnect()
  return tally.outcome(`${WAITING} calls, Redis still for ${STILL_MS} ms, ${times} times`, 0)
}

/**
 * Lets calls wait whose connection breaks on the reply to their booking, which Redis has carried out. Passes if all are
 * served in time.
 */
async function brokenConnections(server: RedisServer, times: number): Promise<Outcome> {
  const proxy = await startProxy(server)
  const store = redisStore({ host: proxy.host, port: proxy.port })
  await store.ready()
  const tally = new Tally(store)
  for (let i = 0; i < times; i++) {
    proxy.cutOnReply()
    await Promise.all(tally.begin(1, `cut ${i}`))
    await tally.count(`cut ${i}`)
  }
  await tally.end()
  const { cuts } = proxy.counts
  await proxy.close()
  const outcome = tally.outcome(`1 call, its connection broken on the reply, ${times} times`, cuts)
  return { ...outcome, pass: outcome.pass && cuts === times }
}

/** The process itself is busy while calls wait for their turn in it, and takes a further call before it looks at its timers. */
async function busyProcess(times: number): Promise<Outcome> {
  const limiter = createLimiter({ name: 'busy', policies: POLICIES })
  const served: number[] = []
  let calls = 0
  const call = async (): Promise<void> => {
    const i = calls++
    await limiter.acquire('k')
    served.push(i)
  }
  for (let i = 0; i < times; i++) {
    const waiting = Array.from({ length: WAITING / 4 }, call)
    const until = performance.now() + 50
    while (performance.now() < until);
    await Promise.all([...waiting, call()])
  }
  await limiter.close()
  const displaced = served.filter((call, place) => call !== place).length
  const figure = `process busy for 50 ms, ${times} times: ${displaced} of ${calls} calls out of their order`
  return { pass: displaced === 0 && served.length === calls, figure }
}

/** Processes that are busy now and then wait for their turns on one key: each serves its calls in the order in which they came. */
async function busyProcesses({ host, port }: RedisServer, calls: number): Promise<Outcome> {
  const members = await Promise.all(Array.from({ length: PROCESSES }, () => startMember(TURNS, resolve('.'))))
  try {
    const job: TurnsJob = { url: `redis://${host}:${port}`, rate: 1000, calls, bunch: 5, stalls: 10 }
    await Promise.all(members.map((member) => member.prepare(job)))
    const results = (await Promise.all(members.map((member) => member.go()))) as TurnsResult[]
    const displaced = results.flatMap(({ served }) => served.filter((call, place) => call !== place)).length
    const served = results.reduce((sum, each) => sum + each.served.length, 0)
    const figure = `${PROCESSES} processes over Redis, each busy ten times: ${displaced} of ${served} calls out of their order`
    return { pass: displaced === 0 && served === PROCESSES * calls, figure }
  } finally {
    await Promise.all(members.map((member) => member.end()))
  }
}

const TURNS = 'packages/faults/src/workers/taking-turns.ts'
const PROCESSES = 4

/** The outcomes of calls that wait, and what Redis carried out for them. */
class Tally {
  readonly #limiter: Limiter
  readonly #counter: Limiter
  readonly #store: Store
  readonly #failures: string[] = []
  #calls = 0
  #served = 0
  #executed = 0
  #longestMs = 0

  constructor(store: Store) {
    this.#store = store
    const options = { name: 'waits', store, policies: POLICIES, onStoreError: 'throw' } as const
    this.#limiter = createLimiter(options)
    this.#counter = createLimiter({ ...options, deadline: '10s' })
  }

  /** Begins calls that wait for their turns, and notes how each ends. Resolve when all have. */
  begin(calls: number, key: string): Promise<void>[] {
    return Array.from({ length: calls }, async () => {
      this.#calls++
      try {
        this.#note(await this.#limiter.acquire(key, { maxWait: MAX_WAIT_MS }))
      } catch (error) {
        this.#failures.push(String(error))
      }
    })
  }

  /** Adds the units that Redis has charged for a key to the number of executions. */
  async count(key: string): Promise<void> {
    const { limit, remaining } = (await this.#counter.peek(key)).policies[1]!
    this.#executed += limit - remaining
  }

  /** Closes the limiters and the store. */
  async end(): Promise<void> {
    await this.#limiter.close()
    await this.#counter.close()
    await this.#store.close()
  }

  /** Passes if all calls were served in time and charged once, but for one more for each of the `broken` connections. */
  outcome(what: string, broken: number): Outcome {
    const pass =
      this.#served === this.#calls &&
      this.#longestMs <= MAX_WAIT_MS &&
      this.#executed >= this.#calls &&
      this.#executed <= this.#calls + broken
    const figure =
      `${what}: ${this.#served} of ${this.#calls} served, after ${this.#longestMs} ms at the latest; ${this.#executed} ` +
      `executions, ${broken} broken connections${this.#failures[0] ? `; ${this.#failures[0]}` : ''}`
    return { pass, figure }
  }

  /** Counts a call that the store served, and keeps the longest wait. */
  #note({ allowed, degraded, waitMs }: Decision): void {
    if (allowed && degraded === undefined) this.#served++
    this.#longestMs = Math.max(this.#longestMs, waitMs)
  }
}
