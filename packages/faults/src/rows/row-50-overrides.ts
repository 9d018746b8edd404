import { resolve } from 'node:path'
import { createLimiter, fixedWindow, type Limiter } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { pause, type RedisServer, startRedis } from '@sluice/harness/redis'
import { startMember } from '../fleet.js'
import { together } from '../outage.js'
import type { Outcome, Row } from '../row.js'
import type { OverridingJob, OverridingResult } from '../workers/overriding.js'

/**
 * Four processes override, block, reset and release the same keys at once; and Redis stops between the write of an override and its read
 * by another process, loses all data, or is another server than before.
 */
export const row: Row = {
  number: 50,
  fault: 'overrides',
  perhaps: ['STORE_DEGRADED', 'STORE_RECOVERED'],
  run: async (share) => together([await atOnce(share), await stoppedBeforeRead(), await afterLoss()]),
}

const PROCESSES = 4
const IN_FORCE_MS = 2000
const WHO = { reason: 'a row', by: 'faults' }

/** Passes if all processes see the same of each key in the end, which is what one of them wrote, and no record is torn. */
async function atOnce(share: number): Promise<Outcome> {
  const server = await startRedis()
  const members = await Promise.all(
    Array.from({ length: PROCESSES }, () =>
      startMember('packages/faults/src/workers/overriding.ts', resolve('.')),
    ),
  )
  try {
    const acts = Math.ceil(share * 500)
    const redis = { host: server.host, port: server.port }
    await Promise.all(
      members.map((each, member) => each.prepare({ redis, member, acts } satisfies OverridingJob)),
    )
    const results = (await Promise.all(members.map((each) => each.go()))) as readonly OverridingResult[]
    const wrong = results.flatMap((result) => result.wrong)
    const views = new Set(results.map(({ keys }) => JSON.stringify(keys)))
    if (views.size > 1) wrong.push(`${views.size} views of the keys`)
    const first = wrong.length === 0 ? 'one view of all keys' : `${wrong.length} wrong: ${wrong[0]}`
    return { pass: wrong.length === 0, figure: `${PROCESSES} processes, ${acts} acts each: ${first}` }
  } finally {
    await Promise.all(members.map((member) => member.end()))
    await server.stop()
  }
}

/**
 * Passes if the other process goes on under the limit that it knows while Redis stands still, as one that knows an override does with
 * that, and has the new one within two seconds of its end.
 */
async function stoppedBeforeRead(): Promise<Outcome> {
  const server = await startRedis()
  const [writer, reader] = [processOf(server), processOf(server)]
  try {
    await writer.limiter.override('known', { limit: 20, until: '1h', ...WHO })
    await until(async () => (await reader.limiter.consume('known')).limit === 20)
    await writer.limiter.override('new', { limit: 30, until: '1h', ...WHO })
    server.pause()
    const seen: number[] = []
    for (let i = 0; i < 30; i++) {
      for (const key of ['known', 'new']) seen.push((await reader.limiter.consume(key, { cost: 0 })).limit)
      await pause(50)
    }
    const [known, fresh] = [0, 1].map((place) => seen.filter((_, i) => i % 2 === place))
    // Its last read may have been just before the pause.
    const stand = known!.every((limit) => limit === 20) && fresh!.every((limit) => limit === fresh![0])
    server.resume()
    const ms = await until(async () => (await reader.limiter.consume('new')).limit === 30)
    const figure = `stopped before the read: ${stand ? 'what was known stands' : String(seen)}, the new one ${ms.toFixed(0)} ms after the end`
    return { pass: stand && ms <= IN_FORCE_MS, figure }
  } finally {
    await Promise.all([writer.close(), reader.close()])
    await server.stop()
  }
}

/** Passes if a process forgets an override that Redis has lost, also where others were written since, and learns of those. */
async function afterLoss(): Promise<Outcome> {
  const server = await startRedis()
  const [writer, reader] = [processOf(server), processOf(server)]
  try {
    await writer.limiter.override('lost', { limit: 20, until: '1h', ...WHO })
    await until(async () => (await reader.limiter.consume('lost')).limit === 20)
    await server.restart()
    await until(async () => (await writer.limiter.consume('other')).degraded === undefined)
    await writer.limiter.override('kept', { limit: 30, until: '1h', ...WHO })
    await until(async () => (await reader.limiter.consume('kept')).limit === 30)
    const limits = [await reader.limiter.peek('lost'), await writer.limiter.peek('lost')].map(
      ({ limit }) => limit,
    )
    return {
      pass: limits.every((limit) => limit === 10),
      figure: `after a loss of all data: ${limits.join(' and ')} of 10`,
    }
  } finally {
    await Promise.all([writer.close(), reader.close()])
    await server.stop()
  }
}

/** A store and a limiter, as a process by itself has them. */
function processOf({ host, port }: RedisServer): { limiter: Limiter; close(): Promise<void> } {
  const store = redisStore({ host, port })
  const policies = [fixedWindow({ limit: 10, window: '1d' })]
  const limiter = createLimiter({ name: 'overridden', policies, store, deadline: '100ms' })
  return {
    limiter,
    async close() {
      await limiter.close()
      await store.close()
    },
  }
}

/** Resolves once a condition holds, with the milliseconds that it took; NaN after ten seconds. */
async function until(holds: () => Promise<boolean>): Promise<number> {
  const began = performance.now()
  while (performance.now() - began < 10_000) {
    if (await holds()) return performance.now() - began
    await pause(20)
  }
  return NaN
}
