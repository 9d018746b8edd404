import { type Address, callsOf, command, pause, startRedis } from '@sluice/harness/redis'
import { drainsContinuously, mainShapes, sampleOf } from '@sluice/testing/internal'
import { charged } from '../charged.js'
import type { Job } from '../workers/caller.js'
import type { PolicySpec } from '../policy-spec.js'
import { lasting } from '../every-algorithm.js'
import { type Fleet, processes, startFleet } from '../fleet.js'
import type { Outcome, Row } from '../row.js'

/** Scripts that vanish under load are brought along again, and no call is charged twice or for nothing by that. */
export const row: Row = { number: 11, fault: 'SCRIPT FLUSH each 100 ms', run: flush }

const EVERY_MS = 100
const MEMBERS = 2
const CALLERS = 32
const LIMIT = 1_000_000_000
const LOG_LIMIT = 100_000

/** The first shape of each algorithm that counts in windows, in numbers. */
const COUNTERS = mainShapes()
  .filter(({ model }) => !model.onlyWindow) // calendars have no leases
  .filter((shape) => !drainsContinuously(shape) && !sampleOf(shape).algorithm.ring)
  .filter((shape, i, all) => all.findIndex(({ algorithm }) => algorithm === shape.algorithm) === i)

const LISTS: readonly (readonly PolicySpec[])[] = [
  [['slidingLog', { limit: LOG_LIMIT, window: '1d' }]],
  COUNTERS.map((shape) => lasting(shape, LIMIT)),
]

const LEASES = { ttl: '1h', size: 8 } as const

/**
 * Removes all scripts from Redis each 100 ms under load. Passes if no call fails, and Redis has charged what was admitted.
 * `share` is the part of the full load, 0 to 1.
 */
async function flush(share: number): Promise<Outcome> {
  const seconds = Math.max(0.5, 10 * share)
  const server = await startRedis()
  const fleet = await startFleet(processes(MEMBERS))
  const lasting = LISTS.map((policies): Load => ({ policies, seconds }))
  const plain = await under(server, fleet, lasting)
  // Each process could use the log up alone: all are denied in the end, and hold no slice then.
  const limit = Math.ceil(LOG_LIMIT * share)
  const calls = Math.ceil((1.25 * limit) / CALLERS)
  const leased = await under(server, fleet, [
    { policies: [['slidingLog', { limit, window: '1d' }]], calls, leases: LEASES },
    { policies: LISTS[1]!, seconds: Math.max(0.5, seconds / 4), leases: LEASES },
  ])
  await fleet.end()
  await server.stop()
  const [log, others] = leased.served as [number, number]
  if (log !== limit) leased.wrong.push(`${log} of ${limit} served`)
  const isBrought = [plain, leased].every(({ flushes, brought }) => brought > flushes)
  const shown = ({ flushes, brought }: Sum) =>
    `${flushes} flushes under ${MEMBERS} x ${CALLERS} callers, scripts brought along ${brought} times`
  return {
    pass: plain.wrong.length + leased.wrong.length === 0 && isBrought,
    figure:
      `${shown(plain)}: ${sum(plain.served)} admitted, ${plain.wrong[0] ?? 'no error and the same count in Redis'}. ` +
      `With leases ${shown(leased)}: ${log} served of a limit of ${limit}, ${others} of others, ` +
      (leased.wrong[0] ?? 'no error, and in Redis what was booked'),
  }
}

type Load = Pick<Job, 'calls' | 'seconds' | 'leases'> & { readonly policies: readonly PolicySpec[] }

interface Sum {
  readonly flushes: number
  readonly brought: number
  /** Under each load. */
  readonly served: readonly number[]
  readonly wrong: string[]
}

/** Runs loads one after the other while scripts are flushed. Returns what was served of each, and every fault that was found. */
async function under(server: Address, fleet: Fleet, loads: readonly Load[]): Promise<Sum> {
  const redis = { host: server.host, port: server.port }
  const before = await callsOf(server, 'eval')
  const served: number[] = []
  const wrong: string[] = []
  let flushes = 0
  for (const load of loads) {
    const { policies, leases } = load
    const job = { redis, key: leases ? 'leased' : 'hot', callers: CALLERS, ...load }
    const flushing = new AbortController()
    const flushed = flushUntil(flushing.signal, server)
    const results = await fleet.run(Array.from({ length: MEMBERS }, () => job))
    flushing.abort()
    flushes += await flushed
    const booked = sum(results.map((result) => result.booked))
    const passed = leases ? sum(results.map(({ servedAt }) => servedAt.length)) : booked
    served.push(passed)
    wrong.push(...results.flatMap(({ errors }) => errors))
    if (passed > booked) wrong.push(`${passed} served, ${booked} booked`)
    const counts = await charged(redis, policies, job.key, leases)
    if (counts.some((count) => count !== booked))
      wrong.push(`${booked} admitted, ${counts.join(', ')} in Redis`)
  }
  return { flushes, brought: (await callsOf(server, 'eval')) - before, served, wrong }
}

const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0)

/** Flushes the scripts of a server each 100 ms until `ended` aborts. Returns how often. */
async function flushUntil(ended: AbortSignal, server: Address): Promise<number> {
  let times = 0
  for (; !ended.aborted; times++) {
    await command(server, 'SCRIPT', 'FLUSH')
    await pause(EVERY_MS)
  }
  return times
}
