import { leaseTermsOf } from '../../core/src/leases/lease-terms.js'
import type { Policy } from '../../core/src/algorithms/contract/policy.js'
import type { Job, Result } from './workers/caller.js'
import { policyOf } from './policy-spec.js'
import type { Fleet } from './fleet.js'

/** A limit of which nothing comes back during a race, and callers in each process. */
export const LIMIT = 1000
export const CALLERS = 32
const LEASE_MS = 30_000

export interface Race {
  readonly results: readonly Result[]
  /** The differences from a single queue of calls. */
  readonly fault: string | undefined
}

/** A quarter more calls than the limit admits, from all members of the fleet at once. */
export async function race(fleet: Fleet, job: Omit<Job, 'callers' | 'calls'>): Promise<Race> {
  const calls = Math.ceil((1.25 * LIMIT) / (fleet.size * CALLERS))
  const jobs = Array.from({ length: fleet.size }, () => ({ ...job, callers: CALLERS, calls }))
  const results = await fleet.run(jobs)
  return { results, fault: faultIn(results) }
}

/**
 * The same with leases. Each member could use the limit up alone, so each is denied in the end, and then holds no unit:
 * exactly what leases leave of the limit is served. Gives what was not so.
 */
export async function leasedRace(
  fleet: Fleet,
  job: Omit<Job, 'callers' | 'calls' | 'leases'>,
): Promise<string | undefined> {
  const calls = Math.ceil((1.25 * LIMIT) / CALLERS)
  const all = { ...job, callers: CALLERS, calls, leases: { ttl: LEASE_MS, size: 50 } }
  const results = await fleet.run(Array.from({ length: fleet.size }, () => all))
  const error = results.flatMap(({ errors }) => errors)[0]
  if (error !== undefined) return error
  const served = results.reduce((sum, { servedAt }) => sum + servedAt.length, 0)
  const asked = results.reduce((sum, { admittedAt }) => sum + admittedAt.length, 0)
  const [{ capacity }] = leaseTermsOf(job.policies.map(policyOf), LEASE_MS).reported as [Policy]
  if (served !== capacity) return `${served} were served of ${capacity}`
  return asked < served / 2
    ? undefined
    : `${asked} calls were admitted by the store, so that hardly any was leased`
}

/** Every place is given away once, so each number of places that may be left was answered exactly once. */
function faultIn(results: readonly Result[]): string | undefined {
  const error = results.flatMap(({ errors }) => errors)[0]
  if (error !== undefined) return error
  const remaining = results.flatMap((result) => result.remaining).sort((a, b) => b - a)
  if (remaining.length !== LIMIT) return `${remaining.length} were admitted`
  const doubled = remaining.findIndex((left, i) => left !== LIMIT - 1 - i)
  return doubled === -1 ? undefined : `${remaining[doubled]} places were left twice`
}
