/*
 * What the store needs of a Redis client. Scripts touch one key, so a Cluster needs no more than a standalone server.
 */
import type { Subscribe } from './clients/subscription.js'

export { isNoScript, storeFailure } from './clients/failure.js'

export interface RedisConnection {
  /** Runs a loaded script. Arguments and reply are bytes. Rejects with the server's error, NOSCRIPT among them. */
  evalsha(sha: string, key: Bytes, argument: Bytes): Promise<Bytes>
  /** Sends the script itself, which also loads it on the node that owns `key`. */
  eval(script: string, key: Bytes, argument: Bytes): Promise<Bytes>
  /** Hears a channel, for what is worth hearing early. Undefined where the client cannot. */
  readonly subscribe?: Subscribe | undefined
  /** Whether this client may send a command again whose reply was lost: then a call might be charged twice. */
  readonly replays: boolean
  /** Ends the connection if the store made it, and is not waited for by a server that does not answer. */
  close(): void
}

export type Bytes = Uint8Array
