import type { Bytes, RedisKey, RedisConnection, ScriptReply } from '../redis-connection.js'
import { sendable } from './buffer.js'
import { type Emitter, listenForErrors } from './error-listener.js'
import { nodeRedisSubscribe } from './subscription.js'

/** The members of a client, pool, cluster or sentinel of node-redis 5 or later that are used. */
export interface NodeRedisClient extends Emitter {
  readonly isReady?: boolean
  withTypeMapping(mapping: Readonly<Record<number, unknown>>): NodeRedisScripts
}

interface NodeRedisScripts {
  evalSha(sha: string, options: ScriptOptions): Promise<unknown>
  eval(script: string, options: ScriptOptions): Promise<unknown>
}

interface ScriptOptions {
  readonly keys: (string | Buffer)[]
  readonly arguments: (string | Buffer)[]
}

/** A connection over a connected client that was handed in, which stays open. The client itself follows MOVED and ASK. */
export function nodeRedisConnection(client: NodeRedisClient): RedisConnection {
  const sender = client.withTypeMapping({ [BLOB_STRING]: Buffer })
  return {
    evalsha: (sha, keys, args) => sender.evalSha(sha, optionsOf(keys, args)) as Promise<ScriptReply>,
    eval: (script, keys, args) => sender.eval(script, optionsOf(keys, args)) as Promise<ScriptReply>,
    isReady: () => client.isReady === true,
    isCluster: 'getSlotRandomNode' in client,
    subscribe: nodeRedisSubscribe(client),
    replays: isSentinel(client),
    close: listenForErrors(client),
  }
}

/**
 * A sentinel repeats commands that were unanswered when its connection broke, unless `maxCommandRediscovers` is 0. It does
 * not expose its options, so every sentinel is taken to do so.
 */
function isSentinel(client: object): boolean {
  return 'getSentinelNode' in client
}

function optionsOf(keys: readonly RedisKey[], args: readonly Bytes[]): ScriptOptions {
  return { keys: sendable(keys), arguments: sendable(args) }
}

/** RESP_TYPES.BLOB_STRING: '$', the first byte of a blob string in the protocol. */
const BLOB_STRING = 36
