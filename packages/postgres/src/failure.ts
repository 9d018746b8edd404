import { SluiceError, StoreError } from '@sluice/core'
import type { StoreFailure } from '@sluice/core/store'

/**
 * Converts the error of a client into a StoreError; an error of Sluice is returned as it is. A statement that Postgres refused or
 * cancelled, with a SQLSTATE, has changed nothing. If the connection ended, a statement that writes (`mayBeWritten`) may have been
 * carried out: then `sent` is true.
 */
export function storeError(error: unknown, mayBeWritten: boolean): Error {
  if (error instanceof SluiceError) return error
  const state = sqlState(error)
  const failure = state === undefined ? failureOfClient(error) : failureOf(state)
  const isRefused = state !== undefined && !ENDS_CONNECTION.has(state)
  const message = `Postgres did not decide: ${textOf(error)}${ADVICE[state ?? ''] ?? ''}`
  return new StoreError(CODES[failure], message, { cause: error, sent: mayBeWritten && !isRefused })
}

/**
 * Returns the SQLSTATE of an error of Postgres, five characters that name its kind; undefined for an error of the client. Only
 * errors of Postgres have a severity: some codes of the system, such as EPIPE, have five characters too. Bun.SQL has the SQLSTATE
 * in `errno`.
 */
export function sqlState(error: unknown): string | undefined {
  const { code, errno, severity } = (error ?? {}) as Readonly<Record<string, unknown>>
  const state = [errno, code].find((each) => /^[0-9A-Z]{5}$/.test(String(each)))
  return typeof severity === 'string' ? (state as string | undefined) : undefined
}

/** Whether Postgres stopped a statement because of a race with another transaction: nothing was written. */
export function isRace(error: unknown): boolean {
  return RACES.has(sqlState(error) ?? '')
}

/** A division by zero, by which a statement undoes itself; a serialization failure; a deadlock. */
const RACES: ReadonlySet<string> = new Set(['22012', '40001', '40P01'])

/** Returns the kind of failure that a SQLSTATE means, by all of it or by its first two characters, the class. */
function failureOf(state: string): StoreFailure {
  return FAILURES[state] ?? FAILURES[state.slice(0, 2)] ?? 'error'
}

/** Kinds of failure, by SQLSTATE or by its first two characters, the class. */
const FAILURES: Readonly<Record<string, StoreFailure>> = {
  '08': 'unavailable',
  '25006': 'readonly',
  '28': 'forbidden',
  '3D000': 'forbidden',
  '42501': 'forbidden',
  '53': 'oom',
  '53300': 'unavailable',
  '55P03': 'busy',
  '57014': 'timeout',
  '57P01': 'unavailable',
  '57P02': 'unavailable',
  '57P03': 'loading',
  '57P05': 'unavailable',
}

/** States with which the server ends a connection, perhaps after it has carried out the statement. */
const ENDS_CONNECTION: ReadonlySet<string> = new Set(['57P01', '57P02', '57P05'])

/** The advice if Postgres takes no writes. */
export const READONLY = ': connect to the primary, with default_transaction_read_only off'

const ADVICE: Readonly<Record<string, string>> = {
  '25006': READONLY,
  '42501':
    ": the role needs select, insert, update and delete on the store's table, and create on its schema to make it",
}

/**
 * Returns the kind of failure that an error without a SQLSTATE means, which comes from the client: it gave up waiting, its
 * connection failed, or JavaScript itself threw it, which means a bug.
 */
function failureOfClient(error: unknown): StoreFailure {
  if ((error as Partial<Error> | null)?.message === 'Query read timeout') return 'timeout'
  return [TypeError, RangeError, ReferenceError].some((Bug) => error instanceof Bug) ? 'error' : 'unavailable'
}

/**
 * Returns the message of an error; its code where the message is empty, as it is when every address of a host name has failed.
 */
function textOf(error: unknown): string {
  const { message, code } = (error ?? {}) as { readonly message?: string; readonly code?: string }
  return message || code || String(error)
}

const CODES = {
  timeout: 'STORE_TIMEOUT',
  unavailable: 'STORE_UNAVAILABLE',
  overloaded: 'STORE_OVERLOADED',
  oom: 'STORE_OOM',
  readonly: 'STORE_READONLY',
  loading: 'STORE_LOADING',
  busy: 'STORE_BUSY',
  forbidden: 'STORE_FORBIDDEN',
  error: 'STORE_ERROR',
} as const
