import type { Duration } from '../values/duration.js'
import * as option from '../values/options.js'

export interface GuardOptions {
  /**
   * The answer to a call when the store cannot decide: 'local' counts in this process (`{ mode: 'local', share: 4 }` a fourth of
   * the limits), 'allow' and 'deny' answer all alike, 'throw' throws the StoreError. A memory store always decides.
   * @default 'local'
   */
  readonly onStoreError?: FailureMode
  /**
   * The longest the store may take to answer, 1 ms to 1 minute. Under 'throw' and 'deny', where nothing else decides,
   * `acquire` waits for the answer up to `maxWait`. A number is in milliseconds.
   * @default '50ms'
   */
  readonly deadline?: Duration
  /**
   * Takes part of a hot key's allowance in one store call and serves later calls from memory for at most `ttl`. Limits
   * hold exactly at the moment each call is served.
   * @default undefined: every call asks the store
   */
  readonly leases?: LeaseOptions
}

/**
 * The answer to a call when the store cannot decide.
 * - 'local': the same policies are enforced in this process, on the calls that it has seen itself. With `share: n`, limits
 *   and capacities are divided by `n`, the number of processes, and are at least 1, so that the fleet stays below the limit.
 * - 'allow': the call passes.
 * - 'deny': the call is denied, with the reason 'degraded', and with status 503 over HTTP.
 * - 'throw': the call rejects with StoreError.
 */
export type FailureMode =
  'local' | { readonly mode: 'local'; readonly share?: number } | 'allow' | 'deny' | 'throw'

/** `share` is 1 where it is not given. */
export interface FailureSettings {
  readonly mode: 'local' | 'allow' | 'deny' | 'throw'
  readonly share: number
}

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

const LOCALLY: FailureSettings = { mode: 'local', share: 1 }
const LOCAL = { mode: option.oneOf(['local'], 'local'), share: option.whole(1, 1_000_000, 1) }
const MODES = option.oneOf(['local', 'allow', 'deny', 'throw'], 'local')

const onStoreError = option.custom(`${MODES.accepts}, or { mode: 'local', share }`, failureSettings, LOCALLY)

/**
 * Reads the option `onStoreError`: one of the modes, or an object `{ mode: 'local', share }`. A share of 4 has each process enforce a
 * fourth of a limit; by default it is 1. Returns REFUSED for any other value.
 */
function failureSettings(value: unknown, name: string): FailureSettings | typeof option.REFUSED {
  if (typeof value === 'object' && value !== null) {
    return option.readOptions(LOCAL, value, { what: name, prefix: `${name}.` })
  }
  const mode = MODES.parse(value, name)
  return mode === option.REFUSED ? option.REFUSED : { mode, share: 1 }
}

/** The longest that a store may take to answer. */
export const deadline = option.duration('1ms', '1m', '50ms')

const LEASES = {
  ttl: option.required(option.duration('1ms', '1h')),
  size: option.whole(1, 1_000_000, 100),
  maxKeys: option.whole(1, 1_000_000, 10_000),
} satisfies option.DeclarationOf<LeaseOptions>

const leases = option.nested(LEASES)

/** `ttl` is in milliseconds. */
export type LeaseSettings = option.Settings<typeof LEASES>

/** Options of limiters about a store that may fail. */
export const GUARD = { onStoreError, deadline, leases } satisfies option.DeclarationOf<GuardOptions>

/** The same, checked and with their defaults; `deadline` is in milliseconds. */
export type GuardSettings = option.Settings<typeof GUARD>

export interface GuardedPermitsOptions {
  readonly name: string
  /** How long a permit stays taken if its holder does not renew it. */
  readonly leaseMs: number
  /** The longest that the store may take to answer. */
  readonly deadlineMs: number
  /** The tickets of this process that hold a permit of `key`. */
  readonly held: (key: string) => readonly number[]
}
