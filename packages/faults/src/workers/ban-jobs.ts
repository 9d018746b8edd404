import { gcra, type Policy, slidingLog } from '@sluice/core'
import type { Address } from '@sluice/harness/redis'

/** No call of the row reaches it. */
export const LARGE = 10_000
/** The lists that calls bring: their shapes differ, so each has a state of its own. */
export const LISTS = {
  free: [gcra({ limit: 2, window: '1d' })],
  paid: [slidingLog({ limit: LARGE, window: '1d' })],
  team: [slidingLog({ limit: LARGE, window: '1h' }), gcra({ limit: LARGE, window: '1d' })],
} as const satisfies Readonly<Record<string, readonly Policy[]>>

export type Place =
  { readonly redis: Address } | { readonly cluster: readonly Address[] } | { readonly folder: string }

/** Nothing to open: the limiter of the job before is used. */
export interface BanJob {
  readonly place?: Place
  readonly act: 'block' | 'unblock' | keyof typeof LISTS
  readonly keys: readonly string[]
}

/** Of the calls of one job, one for each key. */
export interface Banned {
  readonly admitted: number
  readonly blocked: number
  readonly degraded: number
  /** The smallest number of units that were left. */
  readonly remaining: number
}
