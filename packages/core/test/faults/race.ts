import type { Job, Result } from './caller.js'
import type { Fleet } from './fleet.js'

/** A limit of which nothing comes back during a race, and callers in each process. */
export const LIMIT = 1000
export const CALLERS = 32

export interface Race {
  readonly results: readonly Result[]
  /** What was not as in a single queue of calls. */
  readonly fault: string | undefined
}

/** A quarter more calls than the limit admits, from all members of the fleet at once. */
export async function race(fleet: Fleet, job: Omit<Job, 'callers' | 'calls'>): Promise<Race> {
  const calls = Math.ceil((1.25 * LIMIT) / (fleet.size * CALLERS))
  const jobs = Array.from({ length: fleet.size }, () => ({ ...job, callers: CALLERS, calls }))
  const results = await fleet.run(jobs)
  return { results, fault: faultIn(results) }
}

/** Every place is given away once, so callers were told of each number of places that may be left exactly once. */
function faultIn(results: readonly Result[]): string | undefined {
  const error = results.flatMap(({ errors }) => errors)[0]
  if (error !== undefined) return error
  const remaining = results.flatMap((result) => result.remaining).sort((a, b) => b - a)
  if (remaining.length !== LIMIT) return `${remaining.length} were admitted`
  const doubled = remaining.findIndex((left, i) => left !== LIMIT - 1 - i)
  return doubled === -1 ? undefined : `${remaining[doubled]} places were left twice`
}
