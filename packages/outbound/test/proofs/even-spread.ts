import { mostIn, startProvider } from '@sluice/testing'
import { startRedis } from '@sluice/harness/redis'
import { startCrew } from './crew.js'
import type { Job } from './job.js'
import { percent, type Outcome, type Proof } from './proof.js'

/** 600 calls a minute of four processes are one each 100 ms. */
export const proof: Proof = { title: 'even spread', run }

const [LIMIT, WORKERS, GAP_US] = [600, 4, 100_000]

async function run(share: number): Promise<Outcome> {
  const forMs = 30_000 * share
  const crew = startCrew()
  const [redis, provider] = await Promise.all([
    startRedis(),
    startProvider({ limit: LIMIT, windowMs: 60_000 }),
  ])
  const { host, port } = redis
  const policy = { limit: LIMIT, window: 60_000, burst: 1 }
  const job: Job = { redis: { host, port }, origin: provider.origin, policy, callers: 3, forMs }
  const shift = await crew.start(Array.from({ length: WORKERS }, () => job))
  const reports = await shift.done
  await Promise.all([crew.end(), redis.stop()])
  provider.close()
  const instants = reports.flatMap((report) => report.booked.map(([, at]) => at)).toSorted((a, b) => a - b)
  const booked = instants.slice(1).map((at, i) => at - instants[i]!)
  const exact = booked.filter((gap) => gap === GAP_US).length
  const arrived = provider.calls.slice(1).map(({ at }, i) => at - provider.calls[i]!.at)
  const wide = arrived.filter((gap) => gap >= 95).length
  const most = mostIn(provider.calls, 10_000)
  return {
    holds: booked.every((gap) => gap >= GAP_US),
    pass: exact === booked.length && wide >= 0.95 * arrived.length && most <= 101,
    figure:
      `${WORKERS} processes, ${(forMs / 1000).toFixed(0)} s at ${LIMIT} a minute: ${exact} of ${booked.length} booked gaps ` +
      `are exactly 100 ms; at the provider ${percent(wide, arrived.length)} are 95 ms or more, at most ${most} calls in 10 s`,
  }
}
