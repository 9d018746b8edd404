import type { Store } from '@sluice/core'
import { postsIn } from '../top-keys/fleet-top-keys.js'
import type { Denial } from './denial.js'

/** The denials that the processes of a fleet have posted, each process its newest 50. */
export interface LastDenials {
  /** The newest first; of each id the newest alone. */
  readonly denials: readonly Denial[]
  /** Processes that have posted some within the last 30 s. */
  readonly processes: number
  /** What processes have posted, top keys too, that cannot be read. It is left out. */
  readonly malformed: number
  /** The format of each post of another version, of which nothing is read. */
  readonly unknown: readonly number[]
}

/**
 * Reads the last denials of all processes that keep theirs with `keepDenials({ fleet: store })`. This process need not be one.
 * @throws {PolicyError} INVALID_OPTION; StoreError when the store does not answer within 5 s.
 * @example
 * const { denials } = await lastDenials(store)
 * denials.find(({ id }) => id === '4f0a2b6c8d1e3f507192')
 */
export async function lastDenials(store: Store): Promise<LastDenials> {
  const processes = await postsIn(store)
  const oldestFirst = processes.flatMap(({ denials }) => denials).toSorted((a, b) => a.at - b.at)
  const newestById = new Map(oldestFirst.map((denial) => [denial.id, denial]))
  return {
    denials: [...newestById.values()].toSorted((a, b) => b.at - a.at),
    processes: processes.filter(({ denials }) => denials.length > 0).length,
    malformed: processes.reduce((sum, { malformed }) => sum + malformed, 0),
    unknown: processes.flatMap(({ unknown }) => unknown ?? []),
  }
}
