/* What a process of row 52 is asked for and answers. */

export const SHARES = [0.5, 0.8, 1] as const
export const WINDOW_MS = 100 * 86_400_000

/** The store of the fleet. One process has as many limiters as it stands for. */
export interface Place {
  readonly kind: 'memory' | 'machine' | 'redis' | 'postgres'
  readonly address: string
  readonly limiters: number
}

export interface NearingJob {
  readonly place: Place
  /** Where the store takes one, the instant at which its clock stands. */
  readonly nowMs: number
  readonly keys: readonly string[]
  /** To charge, to give back, or to read what counts of each key. */
  readonly step: 'charge' | 'give back' | 'read'
  readonly calls: number
  readonly seed: number
}

/** What was reported, as `key policy share`; what counts, by key and policy; and how many charges were made. */
export interface NearingResult {
  readonly crossed: readonly string[]
  readonly used: readonly (readonly number[])[]
  readonly charges: number
}
