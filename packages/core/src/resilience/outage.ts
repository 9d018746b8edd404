import { StoreError } from '../errors.js'

/** A set-up or an order of calls that no waiting mends, and that nothing may stand in for. */
const LASTING = new Set(['CLOSED', 'CLIENT_MISSING'])

/** Failures in which nobody answers, or a server that has no time for anybody. */
const SILENT = new Set(['STORE_TIMEOUT', 'STORE_UNAVAILABLE', 'STORE_LOADING', 'STORE_BUSY'])

/**
 * Whether a call failed because of its store, so that something can stand in for the answer. Told by codes and names,
 * not by classes: the ESM and the CJS build of this package may meet in one process.
 */
export function isOutage(error: unknown): error is Error {
  const { code, name } = (error ?? {}) as { code?: unknown; name?: unknown }
  return name !== 'InputError' && !LASTING.has(code as string)
}

/** Whether asking again soon is in vain. A server that refuses one call in time may well answer the next. */
export function isSilence(error: Error): boolean {
  return SILENT.has((error as StoreError).code)
}

/** What `decision.degraded` says about a failure: 'timeout' for STORE_TIMEOUT. */
export function whyOf(error: Error): string {
  const { code } = error as { code?: unknown }
  return typeof code === 'string' && code.startsWith(PREFIX)
    ? code.slice(PREFIX.length).toLowerCase()
    : 'error'
}

/** The failure for a call that was not even sent because of an earlier one. */
export function notAsked(because: Error): StoreError {
  const { code = 'STORE_ERROR' } = because as { code?: string }
  return new StoreError(code, `the store was not asked: ${because.message}`, { cause: because })
}

const PREFIX = 'STORE_'
