import { nowMs } from '../../values/clock.js'
import { sharedInProcess } from '../../values/contract.js'
import type { Report } from '../store.js'

/**
 * A Redis client, as the store sees it: it runs scripts and receives messages of a channel. That is little enough for a
 * Cluster to be used like a standalone server.
 */
export interface RedisConnection {
  /** Runs a loaded script. Rejects with the server's error, which is NOSCRIPT if it does not know the script. */
  evalsha(sha: string, keys: readonly RedisKey[], args: readonly Buffer[]): Promise<ScriptReply>
  /** Runs a script by its text, which also loads it on the node that owns the keys. */
  eval(script: string, keys: readonly RedisKey[], args: readonly Buffer[]): Promise<ScriptReply>
  /** Runs `send`, and writes the calls that it makes to each node in one piece, where the client would not. */
  inOneWrite(send: () => void): void
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

export type RedisKey = string | Buffer
/** The reply of a script: a string, or a table of strings. */
export type ScriptReply = Buffer | readonly Buffer[]

/** Calls `receive` with every message of a channel, until the returned function is called. */
export type Subscribe = (channel: string, receive: (message: string) => void) => () => void

export interface Address {
  readonly host: string
  readonly port: number
}

/** The options of a client, or of a connection, that say where it connects to. */
export interface Location extends Partial<Readonly<Record<keyof Address, unknown>>> {
  readonly path?: string | null | undefined
  readonly name?: unknown
  readonly sentinels?: readonly unknown[] | null | undefined
  /** Nodes of a Cluster. Of ioredis some may be ports or URLs, which are not shown. */
  readonly cluster?: readonly unknown[] | undefined
}

/**
 * Returns the address that a client or connection with these options connects to, for messages: the nodes of a Cluster, the name
 * of the master and its Sentinels, a Unix socket, or host and port. It never shows credentials.
 */
export function addressOf({ path, name, sentinels, cluster, ...server }: Location): string {
  if (cluster) return `a Cluster of ${cluster.map(hostAndPort).join()}`
  if (sentinels) return `${String(name)} of the Sentinels ${sentinels.map(hostAndPort).join()}`
  return path ?? hostAndPort(server)
}

/** Returns `host:port` of a server, as messages name it, with Redis's defaults for what is missing or is no text and number. */
function hostAndPort(server: unknown): string {
  const { host, port } = server as Location
  return `${typeof host === 'string' ? host : '127.0.0.1'}:${typeof port === 'number' ? port : 6379}`
}

/**
 * Warns, if a client may send a call again whose reply was lost (`replays`), that such a call is charged twice. Warns once per
 * client, however many stores and limiters use it, also those of another copy of this package.
 */
export function warnOfReplays(client: object, { replays }: RedisConnection, report: Report): void {
  const message =
    'the Redis client repeats a call whose reply was lost, which charges it twice: set maxRetriesPerRequest, ' +
    'in a Cluster also retryDelayOnFailover, or in a sentinel of node-redis maxCommandRediscovers, to 0'
  if (replays) reportOfClient(client, 'CLIENT_REPLAYS', message, report)
}

/**
 * Returns a function that is to be called each time a replica refuses a call of a client that was handed in. If refusals go on for
 * STAYS_MS, the client is still connected to a master that has become a replica, for example because its address points elsewhere
 * now: `report` gets a warning then, once per client. Refusals with a pause of PAUSE_MS between them belong to two failovers.
 */
export function watchForReplica(client: object, report: Report): () => void {
  let [since, latest] = [0, -Infinity]
  return () => {
    const now = nowMs()
    if (now - latest > PAUSE_MS) since = now
    latest = now
    if (now - since >= STAYS_MS) reportOfClient(client, 'CLIENT_ON_REPLICA', STAYS, report)
  }
}

const STAYS_MS = 2000
const PAUSE_MS = 60_000
const STAYS =
  'the Redis client stays at a replica: set reconnectOnError of ioredis, close and connect one of node-redis, ' +
  'or give redisStore the URL'

/** Reports a warning about a client, once for all that use it. */
function reportOfClient(client: object, code: string, message: string, report: Report): void {
  const reported = sharedInProcess(code, () => new WeakSet<object>())
  if (reported.has(client)) return
  reported.add(client)
  report({ event: 'warning', code, message })
}
