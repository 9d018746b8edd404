/** The work of one worker. */
export interface Job {
  readonly redis: { readonly host: string; readonly port: number }
  readonly origin: string
  readonly policy: { readonly limit: number; readonly window: number; readonly burst: number }
  readonly callers: number
  /** How long it goes on, or how many calls it makes. */
  readonly forMs?: number
  readonly calls?: number
  /** By `limiter.acquire`, without priorities, instead of `limitFetch`. */
  readonly direct?: boolean
  readonly semaphore?: { readonly limit: number; readonly lease: number }
  /** Share of the calls that are aborted within 60 ms. */
  readonly abortShare?: number
}

/** The results of one worker. */
export interface Report {
  /** When each turn was booked, and its instant, in microseconds of the store. */
  booked: [number, number][]
  ok: number
  /** The last answer was a 429. */
  refused: number
  denied: number
  aborted: number
  failed: number
  /** The longest that one call took. */
  longestMs: number
  /** How long after its turn each call went out. */
  lateMs: number[]
}
