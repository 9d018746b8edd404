/*
 * What the store needs of a Redis client: scripts, and no more, so that a Cluster is much like a standalone server.
 */
import type { Subscribe } from './clients/subscription.js'

export { isCrossSlot, isNoScript, storeError } from './clients/failure.js'

export interface RedisConnection {
  /** Runs a loaded script. Arguments and reply are bytes. Rejects with the server's error, NOSCRIPT among them. */
  evalsha(sha: string, keys: readonly Key[], args: readonly Bytes[]): Promise<Reply>
  /** Sends the script itself, which also loads it on the node that owns the keys. */
  eval(script: string, keys: readonly Key[], args: readonly Bytes[]): Promise<Reply>
  /** Whether the keys of a call have to lie in one slot. */
  readonly isCluster: boolean
  /** Hears a channel, for what is worth hearing early. Undefined where the client cannot. */
  readonly subscribe?: Subscribe | undefined
  /** Whether this client may send a command again whose reply was lost: then a call might be charged twice. */
  readonly replays: boolean
  /** Ends the connection if the store made it, and is not waited for by a server that does not answer. */
  close(): void
}

export type Bytes = Uint8Array
export type Key = string | Bytes
/** What a script returns: a string, or a table of strings. */
export type Reply = Bytes | readonly Bytes[]
