import type { Bytes, RedisKey, RedisConnection, ScriptReply } from '../redis-connection.js'
import { sendable } from './buffer.js'
import { type Emitter, listenForErrors } from './error-listener.js'
import { nodeRedisSubscribe } from './subscription.js'

/** The part of a client, pool, cluster or sentinel of node-redis 5 or later that is used. */
export interface NodeRedisClient extends Emitter {
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

/** A connection over a connected client that somebody else made and ends. It follows MOVED and ASK by itself. */
export function nodeRedisConnection(client: NodeRedisClient): RedisConnection {
  const sender = client.withTypeMapping({ [BLOB_STRING]: Buffer })
  return {
    evalsha: (sha, keys, args) => sender.evalSha(sha, optionsOf(keys, args)) as Promise<ScriptReply>,
    eval: (script, keys, args) => sender.eval(script, optionsOf(keys, args)) as Promise<ScriptReply>,
    isCluster: 'getSlotRandomNode' in client,
    subscribe: nodeRedisSubscribe(client),
    replays: isSentinel(client),
    close: listenForErrors(client),
  }
}

/**
 * A sentinel sends again what was unanswered when its connection broke, unless `maxCommandRediscovers` is 0. It does not
 * show its options, so it counts as one that does.
 */
function isSentinel(client: object): boolean {
  return 'getSentinelNode' in client
}

function optionsOf(keys: readonly RedisKey[], args: readonly Bytes[]): ScriptOptions {
  return { keys: sendable(keys), arguments: sendable(args) }
}

/** RESP_TYPES.BLOB_STRING: '$', the byte that announces one on the wire. */
const BLOB_STRING = 36
