import { createLimiter, type Limiter } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { type Address, startProxy, startRedis, until } from '@sluice/harness/redis'
import { resolve } from 'node:path'
import { everyAlgorithm } from '../every-algorithm.js'
import { policyOf, type PolicySpec } from '../policy-spec.js'
import { type Member, startMember } from '../fleet.js'
import { forgets } from '../forgotten-count.js'
import { startsAnew } from '../fresh-starts.js'
import { together } from '../outage.js'
import type { Outcomes, PenalizedJob } from '../workers/penalized-caller.js'
import type { Outcome, Row } from '../row.js'

/** A fleet's refusals are counted exactly for a penalty, in a race and around an outage, and forgotten in time. */
export const row: Row = {
  number: 36,
  fault: 'penalties',
  warnings: ['STORE_DEGRADED', 'STORE_RECOVERED', 'PENALTY_FRESH'],
  perhaps: ['STORE_FORGETS'],
  run: penalize,
}

const ENTRY = 'packages/faults/src/workers/penalized-caller.ts'
const LIMIT = 100
const AFTER = 50
const CALLERS = 32
/** Of calls that Redis has to decide, and of those in an outage, which may wait for so long until they are decided here. */
const [PATIENT, DEADLINE] = ['10s', '1s'] as const
const penalty = { after: AFTER, block: '10m', factor: 2, maxBlock: '1d' } as const
/** Minutes of the blocks that follow one another. */
const BLOCKS = [10, 20, 40]

/**
 * Lets processes race into penalties, also in outages. Passes if each offence blocks exactly as long as it should. `share` is
 * the part of the full load, 0 to 1.
 */
async function penalize(share: number): Promise<Outcome> {
  const server = await startRedis()
  const { host, port } = server
  const size = Math.max(2, Math.round(8 * share))
  const members = await Promise.all(Array.from({ length: size }, () => startMember(ENTRY, resolve('.'))))
  try {
    return together([
      await races(members, { host, port }, Math.max(1, Math.round(3 * share))),
      await outages(members, { host, port }, Math.max(1, Math.round(5 * share))),
      await forgets({ host, port }),
      await startsAnew({ host, port }),
    ])
  } finally {
    await Promise.all(members.map((member) => member.end()))
    await server.stop()
  }
}

/**
 * Lets all processes call one key under each algorithm, again each time that its block was lifted. Passes if counts and
 * blocks are right.
 */
async function races(members: readonly Member[], redis: Address, runs: number): Promise<Outcome> {
  const wrong: string[] = []
  const algorithms = everyAlgorithm(LIMIT)
  for (const [title, spec] of algorithms) {
    for (let run = 0; run < runs; run++) {
      const key = `${title}, run ${run}`
      const fault = await race(members, redis, key, spec)
      if (fault !== undefined) wrong.push(`${key}: ${fault}`)
    }
  }
  const total = algorithms.length * runs
  const figure =
    `${members.length} processes x ${CALLERS} callers, ${algorithms.length} algorithms: exactly ${LIMIT} admitted and ` +
    `${AFTER} counted, then one for each longer block, in ${total - wrong.length} of ${total} races`
  return { pass: wrong.length === 0, figure: wrong[0] ? `${figure} (${wrong[0]})` : figure }
}

/**
 * Races into block after block of one key. Returns what was wrong with the counts or the length of a block; undefined if
 * nothing was.
 */
async function race(members: readonly Member[], redis: Address, key: string, spec: PolicySpec) {
  const calls = Math.ceil((2 * (LIMIT + AFTER)) / (members.length * CALLERS))
  const store = redisStore(redis, { denialCache: false })
  const limiter = createLimiter({ name: 'penalized', policies: [policyOf(spec)], store, deadline: PATIENT })
  try {
    for (const [i, minutes] of BLOCKS.entries()) {
      const job = { redis, policies: [spec], penalty, key, callers: CALLERS, calls, deadline: PATIENT }
      const results = await all(members, job)
      const seen = sum(results)
      const expected = i === 0 ? [LIMIT, AFTER, 0] : [0, 1, 0]
      const fault = faultIn([seen.admitted, seen.refused, seen.degraded], expected)
      if (fault) return fault
      const lasts = await blockOf(limiter, key, spec)
      if (lasts !== minutes) return `a block of ${lasts} minutes where ${minutes} are due`
      await lift(limiter, key)
    }
  } finally {
    await store.close()
  }
  return undefined
}

/** Minutes for which a key is blocked, as seen under a limit that it has not reached. */
async function blockOf(limiter: Limiter, key: string, [factory, options]: PolicySpec): Promise<number> {
  const policies = [policyOf([factory, { ...options, limit: 100 * LIMIT }])]
  const { reason, retryAfterMs } = await limiter.peek(key, { policies })
  return reason === 'blocked' ? Math.ceil(retryAfterMs / 60_000) : 0
}

/** Ends the block of a key. What the penalty has counted stays. */
async function lift(limiter: Limiter, key: string): Promise<void> {
  await limiter.block(key, '1ms')
  await until('the block to end', async () => (await limiter.peek(key)).reason !== 'blocked')
}

/** Two refusals before the block Redis is out of reach, each process counts for itself, and then Redis goes on where it was. */
async function outages(members: readonly Member[], server: Address, runs: number): Promise<Outcome> {
  const wrong: string[] = []
  const spec: PolicySpec = ['gcra', { limit: LIMIT, window: '1d' }]
  for (let run = 0; run < runs; run++) {
    const proxy = await startProxy(server)
    const redis = { host: proxy.host, port: proxy.port }
    const job = {
      policies: [spec],
      penalty,
      key: `outage ${run}`,
      callers: 1,
      calls: LIMIT + AFTER - 2,
      deadline: DEADLINE,
    }
    const open = async (each: readonly Member[], calls: number) =>
      void (await Promise.all(each.map((member) => member.prepare({ ...job, redis, calls }))))
    await open(members.slice(0, 1), job.calls)
    const [before] = await go(members.slice(0, 1))
    await open(members, LIMIT + AFTER + 20)
    await proxy.refuse()
    const during = await go(members)
    await proxy.heal()
    const after = sum(await all(members, { ...job, calls: 5 }))
    await proxy.close()
    const fault =
      faultIn([before!.admitted, before!.refused, before!.degraded], [LIMIT, AFTER - 2, 0]) ??
      during.map(faultAlone).find((each) => each !== undefined) ??
      faultIn([after.admitted, after.refused, after.degraded], [0, 2, 0])
    if (fault !== undefined) wrong.push(fault)
  }
  const figure =
    `around an outage: ${AFTER - 2} counted in Redis, ${AFTER} by each process alone, the last 2 in Redis ` +
    `in ${runs - wrong.length} of ${runs}`
  return { pass: wrong.length === 0, figure: wrong[0] ? `${figure} (${wrong[0]})` : figure }
}

/** What is wrong with the counts of one process that decides alone; undefined if nothing is. */
function faultAlone({ admitted, refused, blocked, degraded }: Outcomes): string | undefined {
  return faultIn([admitted, refused, blocked, degraded], [LIMIT, AFTER, 20, LIMIT + AFTER + 20])
}

/**
 * Compares counts of calls (admitted, refused, degraded) with those that are due. Returns the difference as text; undefined
 * if there is none.
 */
function faultIn(seen: readonly number[], expected: readonly number[]): string | undefined {
  return String(seen) === String(expected)
    ? undefined
    : `${seen.join(', ')} where ${expected.join(', ')} are due`
}

/** Gives all processes one job and lets them begin at the same moment, when all are ready. Returns their results. */
async function all(members: readonly Member[], job: PenalizedJob): Promise<Outcomes[]> {
  await Promise.all(members.map((member) => member.prepare(job)))
  return go(members)
}

/** Starts the calls in all processes at once. Returns the outcomes of each. */
function go(members: readonly Member[]): Promise<Outcomes[]> {
  return Promise.all(members.map(async (member) => (await member.go()) as Outcomes))
}

/** The outcomes of all processes added up. */
function sum(results: readonly Outcomes[]): Outcomes {
  const total = { admitted: 0, refused: 0, blocked: 0, degraded: 0 }
  for (const result of results)
    for (const name of ['admitted', 'refused', 'blocked', 'degraded'] as const) total[name] += result[name]
  return total
}
