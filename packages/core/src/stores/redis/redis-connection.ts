/**
 * What the store needs of a Redis client: scripts, and messages of a channel. That is little enough for a Cluster to be
 * used like a standalone server.
 */
export interface RedisConnection {
  /** Runs a loaded script. Rejects with the server's error, which is NOSCRIPT if it does not know the script. */
  evalsha(sha: string, keys: readonly RedisKey[], args: readonly Bytes[]): Promise<ScriptReply>
  /** Runs a script by its text, which also loads it on the node that owns the keys. */
  eval(script: string, keys: readonly RedisKey[], args: readonly Bytes[]): Promise<ScriptReply>
  /**
   * Runs `send`, and writes the calls that it makes to each node in one piece. Undefined if the client writes so by itself,
   * or has one node.
   */
  readonly inOneWrite?: ((send: () => void) => void) | undefined
  /** Whether the client is connected. It queues the calls that are made before. */
  isReady(): boolean
  /** Where Redis is, for messages. Never credentials. */
  readonly address: string
  /** Why the client is not connected, as it reported last. Undefined while it is, or if it does not say. */
  trouble(): unknown
  /**
   * Resolves once the client is connected, rejects with what it reports before. Undefined if it is connected, has failed
   * already, or does not say when it is.
   */
  connect(): Promise<unknown> | undefined
  /** Whether all keys of a call must lie in one slot. */
  readonly isCluster: boolean
  /** Subscribes to a channel. Undefined if the client cannot. */
  readonly subscribe?: Subscribe | undefined
  /** Whether the client may repeat a command whose reply was lost; a call might then be charged twice. */
  readonly replays: boolean
  /** Ends the connection if the store made it, without waiting for a server that does not answer. */
  close(): void
}

export type Bytes = Uint8Array
export type RedisKey = string | Bytes
/** What a script returns: a string, or a table of strings. */
export type ScriptReply = Bytes | readonly Bytes[]

/** Calls `receive` with every message of a channel, until the returned function is called. */
export type Subscribe = (channel: string, receive: (message: string) => void) => () => void
