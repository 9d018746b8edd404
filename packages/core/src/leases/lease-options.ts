import type { Duration } from '../values/duration.js'
import { type DeclarationOf, duration, required, type Settings, whole } from '../values/options.js'

/** How much of a hot key's allowance a process may hold, and for how long. */
export interface LeaseOptions {
  /**
   * How long units may be served after they were booked, 1 ms to 1 hour. All processes that share a limiter must use the
   * same value, because the store counts by it. A number is in milliseconds.
   */
  readonly ttl: Duration
  /**
   * Most units that one call prefetches, 1 to 1,000,000, for a sliding log at most 1,000.
   * @default 100
   */
  readonly size?: number
  /**
   * Keys that may be leased at once, 1 to 1,000,000. Calls on other keys ask the store each time.
   * @default 10_000
   */
  readonly maxKeys?: number
}

/** Options of leases. `ttl` is in milliseconds. */
export const LEASES = {
  ttl: required(duration('1ms', '1h')),
  size: whole(1, 1_000_000, 100),
  maxKeys: whole(1, 1_000_000, 10_000),
} satisfies DeclarationOf<LeaseOptions>

export type LeaseSettings = Settings<typeof LEASES>
