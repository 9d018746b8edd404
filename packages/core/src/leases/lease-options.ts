import { type Duration, parseDuration } from '../values/duration.js'
import { expected, PolicyError } from '../values/errors.js'

/** How much of a hot key's allowance a process may hold, and for how long. */
export interface LeaseOptions {
  /**
   * How long units may be served after they were booked, 1 ms to 1 hour. All processes that share a limiter must use the
   * same value, because the store counts by it.
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

export interface ParsedLeaseOptions {
  readonly ttlMs: number
  readonly size: number
  readonly maxKeys: number
}

/** @throws {PolicyError} INVALID_OPTION, INVALID_DURATION. */
export function parseLeaseOptions(given: LeaseOptions): ParsedLeaseOptions {
  if (typeof given !== 'object' || given === null) {
    throw expected(PolicyError, 'INVALID_OPTION', 'leases must be { ttl, size, maxKeys }', given)
  }
  const { ttl, size = 100, maxKeys = 10_000 } = given
  return {
    ttlMs: parseDuration(ttl, 'leases.ttl', { most: 3_600_000, error: PolicyError }),
    size: upToAMillion(size, 'leases.size'),
    maxKeys: upToAMillion(maxKeys, 'leases.maxKeys'),
  }
}

function upToAMillion(value: number, what: string): number {
  if (Number.isInteger(value) && value >= 1 && value <= 1_000_000) return value
  throw expected(PolicyError, 'INVALID_OPTION', `${what} must be a whole number from 1 to 1000000`, value)
}
