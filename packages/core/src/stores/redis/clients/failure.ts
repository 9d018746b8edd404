import { codeOf, SluiceError, StoreError, type StoreFailure } from '../../../values/errors.js'

/**
 * Whether the server refused a call with this code. Nothing was carried out.
 * - NOSCRIPT: the node does not know the script: not yet, or not since a restart, a failover or SCRIPT FLUSH.
 * - CROSSSLOT: the keys lie in several slots of a Cluster.
 * - TRYAGAIN: the slot of the keys is being moved, and only some of them lie on this node.
 * - READONLY: the server is a replica, or a master that became one.
 * - NOAUTH: the connection is not logged in.
 */
export function isRefusedBy(code: Refusal, error: unknown): boolean {
  return replyCode(error) === code
}

/**
 * Returns the instant on Redis's clock of a call that Redis refused because the calendar boundaries that it brought are too far
 * from it (the reply `OUTSIDE <instant>`); nothing was written. Undefined for any other error.
 */
export function outsideAt(error: unknown): number | undefined {
  const { cause } = error as StoreError
  return replyCode(cause) === 'OUTSIDE' ? Number((cause as Error).message.slice(8)) : undefined
}

type Refusal = 'NOSCRIPT' | 'CROSSSLOT' | 'TRYAGAIN' | 'READONLY' | 'NOAUTH'

/**
 * Converts what a client rejected with into a StoreError, unless it is an error of this package. Its failure is:
 * - `timeout`: the client stopped waiting for the reply (`commandTimeout` of ioredis).
 * - `unavailable`: no connection, a broken one, or a Cluster that does not serve this slot.
 * - `oom`: Redis is out of memory and evicts nothing.
 * - `readonly`: a replica, or a master that refuses writes.
 * - `loading`, `busy`: Redis is loading its data, or runs a long script.
 * - `forbidden`: a wrong password, or an ACL that lacks a command or the keys.
 * - `error`: anything else, such as a script that failed.
 * If the server refused the call, it was not carried out, and the error says so (`sent: false`); a script that failed may have
 * written.
 */
export function storeError(error: unknown): Error {
  if (error instanceof SluiceError) return error
  const cause = withoutSecrets(error)
  const failure = storeFailure(cause)
  const text = textOf(cause)
  const isWithoutLua = /^ERR (unknown command .eval|Could not find scripting)/i.test(text)
  const message = `Redis did not decide: ${isWithoutLua ? WITHOUT_LUA : ''}${text}`
  // A call that the server refused was not carried out; a script that failed may have written.
  const isRefused = failure !== 'error' && replyCode(cause) !== undefined
  return new StoreError(codeOf(failure), message, { cause, ...(isRefused && { sent: false }) })
}

/** Says what a server lacks on which EVAL was renamed, or whose Lua is a module that is not loaded. */
const WITHOUT_LUA = 'the server runs no Lua (EVAL): '

/**
 * Returns a client's error without what may hold a password. ioredis adds the command to its errors, and a server without AUTH or
 * HELLO puts the arguments of such a command into its message; one of them is the password. For the error of a Cluster, returns
 * that of its last node.
 */
function withoutSecrets(error: unknown): unknown {
  const cause = (error as { lastNodeError?: unknown } | null)?.lastNodeError ?? error
  if (!(cause instanceof Error)) return cause
  const message = cause.message.replace(/,? with args beginning with.*/s, '')
  if (message === cause.message && !('command' in cause)) return cause
  return Object.assign(new Error(message), { name: cause.name })
}

/** The message of an error; its code where the message is empty, as it is if each address of a host name failed. */
function textOf(cause: unknown): string {
  const { message, code } = (cause ?? {}) as { readonly message?: string; readonly code?: string }
  return message || code || String(cause)
}

/**
 * Returns the kind of failure that an error of a client means (`storeError` lists them). Of an error reply of Redis only the
 * first word counts, as the rest differs by version. Any other error comes from the client: it means a broken connection, unless
 * JavaScript itself threw it, which means a bug.
 */
export function storeFailure(error: unknown): StoreFailure {
  if (error instanceof StoreError && error.failure) return error.failure
  const code = replyCode(error)
  if (code !== undefined) return FAILURES[code] ?? 'error'
  // The client's own limit for a reply: the connection is intact, and the call may still be carried out.
  if ((error as Partial<Error> | null)?.message === 'Command timed out') return 'timeout'
  // An error that is no reply of Redis comes from the client: a broken connection (a dozen different texts), or a bug.
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

/**
 * Returns the first word of an error reply of Redis, such as OOM, by which failures differ; undefined for an error of the client.
 * Three replies begin with the plain word ERR and are recognized by their text: a missing permission in Redis 7, a script sent
 * before the log-in, and in Redis 6.2 the error of a command inside a script.
 */
function replyCode(error: unknown): string | undefined {
  const text = (error as { message?: unknown } | null | undefined)?.message
  if (typeof text !== 'string') return undefined
  const code = /^([A-Z][A-Z0-9]+) /.exec(text)?.[1]
  if (code !== 'ERR') return code
  // Redis 6.2 wraps the error of a command inside a script; Redis 7 words a missing permission differently.
  if (text.startsWith('ERR The user executing the script ')) return 'NOPERM'
  // A script is longer than what a server reads of a client that has not logged in.
  if (text.startsWith('ERR Protocol error: unauthenticated ')) return 'NOAUTH'
  return /^ERR Error running script .*?: -([A-Z]+) /.exec(text)?.[1] ?? code
}

/**
 * Whether an error is one that JavaScript itself throws for wrong code, and not one about Redis or the network.
 */
function isBug(error: unknown): boolean {
  return [TypeError, RangeError, ReferenceError, SyntaxError].some((Bug) => error instanceof Bug)
}
