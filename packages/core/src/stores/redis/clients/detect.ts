import { expected, PolicyError } from '../../../values/errors.js'
import type { RedisConnection } from '../redis-connection.js'
import { type IoredisClient, ioredisConnection } from './ioredis.js'
import { type NodeRedisClient, nodeRedisConnection } from './node-redis.js'

/** Whether `connectionOf` accepts the value. It is recognised by its methods, as no client package need be installed. */
export function isRedisClient(value: unknown): value is IoredisClient | NodeRedisClient {
  return isIoredis(value) || isNodeRedis(value)
}

/**
 * A connection over a client that was handed in. Closing the connection leaves the client open.
 * @throws {PolicyError} INVALID_OPTION for anything else.
 */
export function connectionOf(client: unknown): RedisConnection {
  if (isIoredis(client)) return ioredisConnection(client)
  if (isNodeRedis(client)) return nodeRedisConnection(client)
  const what = `client must be one of ioredis or iovalkey (Redis, Cluster) or node-redis 5 or later (client, cluster, sentinel)`
  throw expected(PolicyError, 'INVALID_OPTION', what, client)
}

function isIoredis(value: unknown): value is IoredisClient {
  return has(value, 'evalshaBuffer', 'evalBuffer', 'sendCommand', 'on', 'off') && isObject(value.options)
}

function isNodeRedis(value: unknown): value is NodeRedisClient {
  return has(value, 'withTypeMapping', 'evalSha', 'eval', 'on', 'off')
}

function has(value: unknown, ...methods: string[]): value is Record<string, unknown> {
  return isObject(value) && methods.every((name) => typeof value[name] === 'function')
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
