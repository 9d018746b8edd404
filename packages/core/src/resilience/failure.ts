import type { Answer, Keyspace } from '../stores/store.js'
import { STORE_FAILURES, StoreError, type StoreFailure } from '../values/errors.js'
import { oneOf, option, read, REFUSED, whole } from '../values/options.js'

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

const LOCALLY: FailureSettings = { mode: 'local', share: 1 }
const LOCAL = { mode: oneOf(['local'], 'local'), share: whole(1, 1_000_000, 1) }
const MODES = oneOf(['local', 'allow', 'deny', 'throw'], 'local')

/** The option `onStoreError`. */
export const onStoreError = option(
  `${MODES.accepts}, or { mode: 'local', share }`,
  (value, name): FailureSettings | typeof REFUSED => {
    if (typeof value === 'object' && value !== null) {
      return read(LOCAL, value, { what: name, prefix: `${name}.` })
    }
    const mode = MODES.parse(value, name)
    return mode === REFUSED ? REFUSED : { mode, share: 1 }
  },
  LOCALLY,
)

/**
 * The answer under 'allow' and 'deny', where no policy decided, and to a cost above the share of the keyspace `by`. A denied
 * caller may try again in a second.
 */
export function undecidedAnswer(why: StoreFailure, allowed: boolean, by?: Keyspace): Answer {
  const at = allowed ? 0 : RETRY_AFTER
  const degraded = { why, allowed, by }
  return {
    now: 0,
    at,
    reason: undefined,
    binding: 0,
    remaining: 0,
    resetAt: at,
    parts: undefined,
    booking: undefined,
    degraded,
  }
}

/**
 * The answer of the keyspace that decided in place of the store. A cost that fits the store's policies and not this
 * process's share of them fits again after the outage.
 */
export function degradedAnswer(why: StoreFailure, answer: Answer, by: Keyspace, neverFits: boolean): Answer {
  if (answer.reason === 'cost' && !neverFits) return undecidedAnswer(why, false, by)
  const { now, at, reason, binding, remaining, resetAt, parts, booking } = answer
  const degraded = { why, allowed: reason === undefined, by }
  return { now, at, reason, binding, remaining, resetAt, parts, booking, degraded }
}

/** Microseconds. */
const RETRY_AFTER = 1_000_000

/**
 * Whether a call failed because of its store, so that the failure mode applies. Recognised by codes and names and not by
 * classes, because several copies of this package may meet in one process.
 */
export function isOutage(error: unknown): error is Error {
  const { code, name } = (error ?? {}) as { code?: unknown; name?: unknown }
  return name !== 'InputError' && !MISUSE.has(code as string)
}

/** Errors of the set-up or of the order of calls: waiting does not help, and no failure mode hides them. */
const MISUSE = new Set(['CLOSED', 'CLIENT_MISSING'])

/** Why the store did not decide. An error that another store throws without a reason counts as 'error'. */
export function failureOf(error: unknown): StoreFailure {
  const failure = (error as Partial<StoreError> | null | undefined)?.failure
  return failure !== undefined && Object.hasOwn(STORE_FAILURES, failure) ? failure : 'error'
}

/** Whether the next call would fail as well. A server that refuses one call in time may well answer the next. */
export function isSilence(error: Error): boolean {
  return STORE_FAILURES[failureOf(error)].isSilence
}

/** The failure of a call that was not sent because of an earlier failure. */
export function notAsked(because: Error): StoreError {
  const { code } = STORE_FAILURES[failureOf(because)]
  return new StoreError(code, `the store was not asked: ${because.message}`, { cause: because, sent: false })
}
