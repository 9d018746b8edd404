import { SluiceError, STORE_FAILURES, StoreError, type StoreFailure } from '../../../values/errors.js'

/** Whether the node does not know the script (yet, or since a restart, a failover, SCRIPT FLUSH): EVAL loads it. */
export function isNoScript(error: unknown): boolean {
  return replyCode(error) === 'NOSCRIPT'
}

/** Whether a server of a Cluster was asked for keys of several slots at once. Nothing was carried out. */
export function isCrossSlot(error: unknown): boolean {
  return replyCode(error) === 'CROSSSLOT'
}

/** Whether this is a replica, or a master that became one. Nothing was carried out. */
export function isReadOnly(error: unknown): boolean {
  return replyCode(error) === 'READONLY'
}

/**
 * The error for what a client rejected with.
 * - `timeout`: the client gave up on the reply, by a `commandTimeout` of ioredis.
 * - `unavailable`: no connection, or it broke, or the Cluster does not serve this slot.
 * - `oom`: out of memory, with a policy that evicts nothing.
 * - `readonly`: a replica, or a master that refuses writes.
 * - `loading`, `busy`: Redis is reading its data, or runs a long script.
 * - `forbidden`: a wrong password, or an ACL that lacks a command or the keys.
 * - `error`: anything else, a script that failed among them.
 */
export function storeError(cause: unknown): Error {
  if (cause instanceof SluiceError) return cause
  const failure = storeFailure(cause)
  // A server that answers with a refusal has not carried the call out; a script that failed may have written.
  const sent = STORE_FAILURES[failure].sent && (failure === 'error' || replyCode(cause) === undefined)
  const message = `Redis did not decide: ${(cause as Error).message}`
  return new StoreError(STORE_FAILURES[failure].code, message, { cause, sent })
}

/** Sorts what a client rejected with. Of Redis's texts only the first word counts: the rest differs by version. */
export function storeFailure(error: unknown): StoreFailure {
  if (error instanceof StoreError && error.failure) return error.failure
  const code = replyCode(error)
  if (code !== undefined) return FAILURES[code] ?? 'error'
  // The client's own limit for a reply: the connection stands, and the call may be carried out yet.
  if ((error as Partial<Error> | null)?.message === 'Command timed out') return 'timeout'
  // What is no reply of Redis comes from the client: a broken connection under one of a dozen texts, or a bug.
  return error instanceof SluiceError || isBug(error) ? 'error' : 'unavailable'
}

const FAILURES: Readonly<Record<string, StoreFailure>> = {
  OOM: 'oom',
  READONLY: 'readonly',
  MISCONF: 'readonly',
  NOREPLICAS: 'readonly',
  LOADING: 'loading',
  BUSY: 'busy',
  UNKILLABLE: 'busy',
  MASTERDOWN: 'unavailable',
  CLUSTERDOWN: 'unavailable',
  TRYAGAIN: 'unavailable',
  NOAUTH: 'forbidden',
  NOPERM: 'forbidden',
  WRONGPASS: 'forbidden',
}

function replyCode(error: unknown): string | undefined {
  const text = (error as { message?: unknown } | null | undefined)?.message
  if (typeof text !== 'string') return undefined
  const code = /^([A-Z][A-Z0-9]+) /.exec(text)?.[1]
  if (code !== 'ERR') return code
  // Redis 6.2 wraps what a command inside a script was refused with, 7 puts a missing permission into words of its own.
  if (text.startsWith('ERR The user executing the script ')) return 'NOPERM'
  return /^ERR Error running script .*?: -([A-Z]+) /.exec(text)?.[1] ?? code
}

function isBug(error: unknown): boolean {
  return (
    error instanceof TypeError ||
    error instanceof RangeError ||
    error instanceof ReferenceError ||
    error instanceof SyntaxError
  )
}
