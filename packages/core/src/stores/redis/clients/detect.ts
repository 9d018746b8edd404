import { CONNECTION } from '../../../values/contract.js'
import type { RedisConnection } from '../redis-connection.js'
import { type IoredisClient, ioredisConnection } from './ioredis.js'
import { type NodeRedisClient, nodeRedisConnection } from './node-redis.js'

/**
 * A client of ioredis or iovalkey (Redis, Cluster), or of node-redis 5 or later (client, pool, cluster, sentinel), by the
 * methods that their types have in common, as no client package need be installed.
 */
export type RedisClient =
  | (Methods<'evalsha' | 'sendCommand' | 'on' | 'off'> & { readonly options: object })
  | Methods<'withTypeMapping' | 'evalSha' | 'eval' | 'on' | 'off'>

type Methods<Name extends string> = { readonly [N in Name]: (...args: never[]) => unknown }

/** The clients that are known, for messages. */
export const CLIENTS =
  'a client of ioredis or iovalkey (Redis, Cluster) or of node-redis 5 or later (client, pool, cluster, sentinel)'

/**
 * Makes the connection by which the store uses a client of ioredis, iovalkey or node-redis that was handed in. To close it leaves
 * the client open. An object that brings a connection of its own, under the symbol CONNECTION, is used by that; it stands for a
 * simulated server. Undefined for any other value.
 */
export function connectionOver(value: unknown): RedisConnection | undefined {
  if (isRecord(value) && CONNECTION in value) return value[CONNECTION] as RedisConnection
  if (isIoredis(value)) return ioredisConnection(value)
  return isNodeRedis(value) ? nodeRedisConnection(value) : undefined
}

/**
 * Whether a value is a client of ioredis or iovalkey. Asks for their methods and not for their class, as an application may have
 * another copy of the package.
 */
function isIoredis(value: unknown): value is IoredisClient {
  const isOne = has(value, 'evalshaBuffer', 'evalBuffer', 'sendCommand', 'on', 'off')
  return isOne && isRecord((value as { options?: unknown }).options)
}

/** Whether a value is a client of node-redis 5 or later, by methods that only those have. */
function isNodeRedis(value: unknown): value is NodeRedisClient {
  return has(value, 'withTypeMapping', 'evalSha', 'eval', 'on', 'off')
}

/**
 * Describes a value that is no client of a known kind, for an error message, with the remedy if one is known: a promise to be
 * awaited, a client that is too old. Shows nothing that the value holds, which may be a password.
 */
export function described(value: unknown): string {
  if (typeof value === 'function') return 'a function: hand in the client that it makes'
  if (!isRecord(value)) return String(value)
  if (has(value, 'then')) return 'a promise: await it'
  if (has(value, 'EVALSHA'))
    return 'a client of node-redis 4 or older, or its legacy(): npm install redis@latest'
  const name = value.constructor?.name
  const hasClass = typeof name === 'string' && name !== 'Object' && name !== ''
  return hasClass ? `an object of the class ${name}` : 'an object'
}

/** Whether a value is an object with all of these methods, its own or inherited. */
function has(value: unknown, ...methods: string[]): boolean {
  return isRecord(value) && methods.every((name) => typeof value[name] === 'function')
}

/** Whether a value is an object, of which any property may be read. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
