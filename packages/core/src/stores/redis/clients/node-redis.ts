import { addressOf } from '../redis-connection.js'
import type { Location, RedisConnection, RedisKey, ScriptReply, Subscribe } from '../redis-connection.js'
import { type Emitter, listenForErrors } from './error-listener.js'
import { untilDone } from './until-done.js'

/** The members of a client, pool, cluster or sentinel of node-redis 5 or later that are used. */
export interface NodeRedisClient extends Emitter {
  /** Absent on a pool and a cluster, which do not report it. */
  readonly isReady?: boolean
  /** Absent on a pool, a cluster and a sentinel. */
  readonly options?: { readonly socket?: Location }
  withTypeMapping(mapping: Readonly<Record<number, unknown>>): NodeRedisScripts
  connect(): Promise<unknown>
  destroy(): void
  /** Absent, like `subscribe`, on a pool, which cannot subscribe. */
  duplicate?(): NodeRedisClient
  subscribe?(channel: string, receive: (message: string) => void): Promise<unknown>
}

interface NodeRedisScripts {
  evalSha(sha: string, options: ScriptOptions): Promise<unknown>
  eval(script: string, options: ScriptOptions): Promise<unknown>
}

interface ScriptOptions {
  readonly keys: readonly RedisKey[]
  readonly arguments: readonly Buffer[]
}

/**
 * Returns a connection over a client, pool, cluster or sentinel of node-redis, told apart by methods that only one kind has. The
 * client stays open, and itself follows MOVED and ASK, with which a node of a Cluster refers it to another. The type mapping makes
 * replies Buffers, as scripts reply with bytes.
 */
export function nodeRedisConnection(client: NodeRedisClient): RedisConnection {
  const sender = client.withTypeMapping({ [BLOB_STRING]: Buffer })
  return {
    address: client.options ? addressOf(client.options.socket ?? {}) : 'the nodes of a node-redis client',
    ...listenForErrors(client, () => client.isReady !== false),
    evalsha: (sha, keys, args) => sender.evalSha(sha, { keys, arguments: args }) as Promise<ScriptReply>,
    eval: (script, keys, args) => sender.eval(script, { keys, arguments: args }) as Promise<ScriptReply>,
    inOneWrite: (send) => send(),
    isReady: () => client.isReady === true,
    isCluster: 'getSlotRandomNode' in client,
    subscribe: client.duplicate && client.subscribe && subscriberOver(client),
    // A sentinel repeats commands that were unanswered when its connection broke, unless `maxCommandRediscovers` is 0. It
    // does not expose its options, so every sentinel is taken to do so.
    replays: 'getSentinelNode' in client,
  }
}

/**
 * Makes the function that subscribes to a channel and returns a function that ends the subscription. Each subscription has a
 * duplicate of the client, because a subscribed connection takes no other commands. It subscribes anew by itself whenever it connects
 * again, but only if it had been subscribed: an attempt that failed is made again here, with another duplicate. Messages published
 * while it is broken are lost, so semaphores also poll.
 */
function subscriberOver(client: NodeRedisClient): Subscribe {
  return (channel, receive) => {
    let endLast = (): void => {}
    const attempts = untilDone(() => {
      endLast()
      const { done, end } = subscribeBy(client.duplicate!(), channel, receive)
      endLast = end
      return done
    })
    attempts.start()
    return () => {
      attempts.end()
      endLast()
    }
  }
}

/**
 * Connects a duplicate of a client and subscribes it to a channel. If the subscription ends while the duplicate connects, that is
 * destroyed only afterwards: destroyed earlier, it would still connect, and keep its socket.
 */
function subscribeBy(
  subscriber: NodeRedisClient,
  channel: string,
  receive: (message: string) => void,
): { readonly done: Promise<unknown>; readonly end: () => void } {
  let isConnecting = true
  let isEnded = false
  const onAttemptEnded = (): void => {
    isConnecting = false
    if (isEnded) end()
  }
  const end = (): void => {
    isEnded = true
    try {
      if (!isConnecting) subscriber.destroy()
    } catch {
      // It was not connected.
    }
  }
  subscriber.on('reconnecting', () => (isConnecting = true))
  subscriber.on('ready', onAttemptEnded)
  subscriber.on('error', onAttemptEnded)
  const connected = subscriber.connect().finally(onAttemptEnded) // a cluster is not 'ready'
  return { done: connected.then(() => isEnded || subscriber.subscribe!(channel, receive)), end }
}

/** RESP_TYPES.BLOB_STRING: '$', the first byte of a blob string in the protocol. */
const BLOB_STRING = 36
