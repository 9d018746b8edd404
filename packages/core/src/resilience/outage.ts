import { STORE_FAILURES, StoreError, type StoreFailure } from '../values/errors.js'

/** A set-up or an order of calls that no waiting mends, and that nothing may stand in for. */
const LASTING = new Set(['CLOSED', 'CLIENT_MISSING'])

/**
 * Whether a call failed because of its store, so that something can stand in for the answer. Recognised by codes and
 * names, not by classes: the ESM and the CJS build of this package may meet in one process.
 */
export function isOutage(error: unknown): error is Error {
  const { code, name } = (error ?? {}) as { code?: unknown; name?: unknown }
  return name !== 'InputError' && !LASTING.has(code as string)
}

/** Why the store did not decide. What another store throws without a reason counts as 'error'. */
export function failureOf(error: unknown): StoreFailure {
  const failure = (error as Partial<StoreError> | null | undefined)?.failure
  return failure !== undefined && Object.hasOwn(STORE_FAILURES, failure) ? failure : 'error'
}

/** Whether asking again soon is in vain. A server that refuses one call in time may well answer the next. */
export function isSilence(error: Error): boolean {
  return STORE_FAILURES[failureOf(error)].isSilence
}

/** The failure of a call that was not sent because of an earlier failure. */
export function notAsked(because: Error): StoreError {
  const { code } = STORE_FAILURES[failureOf(because)]
  return new StoreError(code, `the store was not asked: ${because.message}`, { cause: because, sent: false })
}
