import { startProvider } from '@sluice/testing'
import { startRedis } from '@sluice/harness/redis'
import { startCrew } from './crew.js'
import type { Job } from './job.js'
import type { Outcome, Proof } from './proof.js'

/** Who booked first is served first, whichever process it is in. */
export const proof: Proof = { title: 'order', run }

const WORKERS = 3

async function run(share: number): Promise<Outcome> {
  const calls = Math.ceil((1000 * share) / WORKERS)
  const crew = startCrew()
  const [redis, provider] = await Promise.all([
    startRedis(),
    startProvider({ limit: 1_000_000, windowMs: 1000 }),
  ])
  const { host, port } = redis
  const policy = { limit: 200, window: 1000, burst: 1 }
  const base = { redis: { host, port }, origin: provider.origin, policy, direct: true }
  const job: Job = { ...base, callers: calls, calls }
  const shift = await crew.start(Array.from({ length: WORKERS }, () => job))
  const reports = await shift.done
  await Promise.all([crew.end(), redis.stop()])
  provider.close()
  const booked = reports.flatMap((report) => report.booked).toSorted(([now], [other]) => now - other)
  const atStore = inversions(booked.map(([, at]) => at))
  const atProvider = inversions(provider.calls.map(({ tag }) => tag))
  const all = provider.calls.length === calls * WORKERS
  return {
    holds: atStore === 0 && all,
    pass: atStore === 0 && all,
    figure:
      `${WORKERS} processes queue ${booked.length} calls at ${policy.limit}/s: ${atStore} inversions at the store, ` +
      `${atProvider} at the provider, where they arrive over the network`,
  }
}

/** Neighbours of which the later was booked for an earlier instant. */
function inversions(instants: readonly number[]): number {
  return instants.slice(1).filter((instant, i) => instant < instants[i]!).length
}
