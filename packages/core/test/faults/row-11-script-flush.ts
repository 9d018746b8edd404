import { type Address, command } from '../redis/servers/command.js'
import { startRedis } from '../redis/servers/redis-server.js'
import { pause } from '../redis/servers/until.js'
import { callsOf, charged } from './charged.js'
import type { PolicySpec } from './every-algorithm.js'
import { processes, startFleet } from './fleet.js'
import type { Outcome, Row } from './row.js'

/** Scripts that vanish under load are brought along again, and no call is charged twice or for nothing by that. */
export const row: Row = { number: 11, fault: 'SCRIPT FLUSH each 100 ms', run: flush }

const EVERY_MS = 100
const MEMBERS = 2
const CALLERS = 32
const LIMIT = 1_000_000_000

const LISTS: readonly (readonly PolicySpec[])[] = [
  [['slidingLog', { limit: 100_000, window: '1d' }]],
  [
    ['fixedWindow', { limit: LIMIT, window: '365d' }],
    ['slidingWindow', { limit: LIMIT, window: '1d' }],
    ['tokenBucket', { limit: LIMIT, window: '365d', refill: 'interval', name: 'bucket' }],
  ],
]

async function flush(share: number): Promise<Outcome> {
  const seconds = Math.max(0.5, 10 * share)
  const server = await startRedis()
  const redis = { host: server.host, port: server.port }
  const fleet = await startFleet(processes(MEMBERS))
  const wrong: string[] = []
  const total = { admitted: 0, flushes: 0 }
  for (const policies of LISTS) {
    const job = { redis, key: 'hot', policies, callers: CALLERS, seconds }
    const flushing = new AbortController()
    const flushes = flushUntil(flushing.signal, server)
    const results = await fleet.run(Array.from({ length: MEMBERS }, () => job))
    flushing.abort()
    total.flushes += await flushes
    const admitted = results.reduce((sum, { admittedAt }) => sum + admittedAt.length, 0)
    total.admitted += admitted
    wrong.push(...results.flatMap(({ errors }) => errors))
    const counts = await charged(redis, policies, 'hot')
    if (counts.some((count) => count !== admitted))
      wrong.push(`${admitted} admitted, ${counts.join(', ')} in Redis`)
  }
  const brought = await callsOf(server, 'eval')
  await fleet.end()
  await server.stop()
  return {
    pass: wrong.length === 0 && brought > total.flushes,
    figure:
      `${total.flushes} flushes under ${MEMBERS} x ${CALLERS} callers, scripts brought along ${brought} times: ` +
      `${total.admitted} admitted, ${wrong[0] ?? 'no error and the same count in Redis'}`,
  }
}

async function flushUntil(ended: AbortSignal, server: Address): Promise<number> {
  let times = 0
  for (; !ended.aborted; times++) {
    await command(server, 'SCRIPT', 'FLUSH')
    await pause(EVERY_MS)
  }
  return times
}
