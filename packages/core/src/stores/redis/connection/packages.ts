import { StoreError } from '../../../values/errors.js'
import type { IoredisClient } from '../clients/ioredis.js'
import type { NodeRedisClient } from '../clients/node-redis.js'

/*
 * The client packages are optional peers: they are loaded when a connection is made, not when this file is imported.
 * The specifiers are literals, so that bundlers include the packages that are installed; each import is in a `try`, so that
 * bundlers treat the others as optional.
 */
export type ClientPackage = { readonly ioredis: IoredisPackage } | { readonly nodeRedis: NodeRedisPackage }

export interface IoredisPackage {
  readonly Redis: new (options: object) => OwnIoredis
  readonly Cluster: new (nodes: readonly object[], options: object) => OwnIoredis
}

export interface OwnIoredis extends IoredisClient {
  readonly status: string
  once(event: 'close' | 'ready', listener: () => void): unknown
  once(event: 'error', listener: (error: unknown) => void): unknown
  disconnect(): void
  /** Makes another client with the same options, overridden by these. */
  duplicate(options: object): OwnIoredis
  on(event: 'error', listener: (error: unknown) => void): unknown
  on(event: 'end' | 'ready', listener: () => void): unknown
  on(event: '+node', listener: (node: OwnIoredis) => void): unknown
}

export interface NodeRedisPackage {
  createClient(options: object): OwnNodeRedis
  createCluster(options: object): OwnNodeRedis
}

export interface OwnNodeRedis extends NodeRedisClient {
  once(event: 'ready', listener: () => void): unknown
  once(event: 'error', listener: (error: unknown) => void): unknown
  readonly on: NodeRedisClient['on'] & ((event: 'connect', listener: () => void) => unknown)
  /** Of a cluster. */
  readonly masters?: readonly { readonly client?: { destroy(): void } }[]
  connect(): Promise<unknown>
  destroy(): void
}

/** Loads the first package that is installed: ioredis, iovalkey or redis. Rejects with StoreError CLIENT_MISSING if none is. */
export async function loadClientPackage(): Promise<ClientPackage> {
  const ioredis = (await loadIoredis()) ?? (await loadIovalkey())
  if (ioredis) return { ioredis: exportsOf<IoredisPackage>(ioredis, 'Cluster') }
  const nodeRedis = await loadNodeRedis()
  if (nodeRedis) return { nodeRedis: exportsOf<NodeRedisPackage>(nodeRedis, 'createCluster') }
  const what = `a connection of its own needs a client package: npm install ioredis (or iovalkey, or redis)`
  throw new StoreError('CLIENT_MISSING', `${what}, or hand in a client`)
}

async function loadIoredis(): Promise<unknown> {
  try {
    return await import('ioredis')
  } catch (error) {
    return unlessMissing(error, 'ioredis')
  }
}

async function loadIovalkey(): Promise<unknown> {
  try {
    return await import('iovalkey')
  } catch (error) {
    return unlessMissing(error, 'iovalkey')
  }
}

async function loadNodeRedis(): Promise<unknown> {
  try {
    return await import('redis')
  } catch (error) {
    return unlessMissing(error, 'redis')
  }
}

/** Rethrows unless the package is missing: one that is installed and fails to load is an error. */
function unlessMissing(error: unknown, name: string): undefined {
  const { code, message } = error as NodeJS.ErrnoException
  const missing = code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND'
  if (missing && message.includes(`'${name}'`)) return undefined
  throw error
}

/** The exports of a CommonJS module, which lie in `default` or not, depending on the loader. */
function exportsOf<T>(module: unknown, name: keyof T): T {
  const { default: whole } = module as { default?: T }
  return whole?.[name] === undefined ? (module as T) : whole
}
