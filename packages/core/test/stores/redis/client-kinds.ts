import { Cluster as IoredisCluster, Redis as Ioredis } from 'ioredis'
import { Cluster as IovalkeyCluster, Redis as Iovalkey } from 'iovalkey'
import { createClient, createClientPool, createCluster } from 'redis'
import type { Address } from '@sluice/harness/redis'
import { connectionOver, type RedisClient } from '../../../src/stores/redis/clients/detect.js'
import { OwnConnection } from '../../../src/stores/redis/connection/own.js'
import type { RedisConnection } from '../../../src/stores/redis/redis-connection.js'

/** A connection, and what ends it with its client. */
export interface Link {
  readonly connection: RedisConnection
  end(): unknown
}

type Kinds = Readonly<Record<string, (to: Address, options?: object) => Promise<Link>>>

export const ofOneServer: Kinds = {
  ioredis: (to, options) => ioredisLink(new Ioredis({ ...at(to), ...options })),
  iovalkey: (to, options) => ioredisLink(new Iovalkey({ ...at(to), ...options })),
  'ioredis with autopipelining': (to) => ioredisLink(new Ioredis({ ...at(to), enableAutoPipelining: true })),
  'node-redis': (to, options) => nodeRedisLink(createClient({ socket: at(to), ...options })),
  'a node-redis pool': (to) => nodeRedisLink(createClientPool({ socket: at(to) })),
  'a connection of its own by options': async (to) => ownLink(new OwnConnection(at(to))),
  'a connection of its own by URL': async (to) =>
    ownLink(new OwnConnection(`redis://${to.host}:${to.port}/0`)),
}

export const ofCluster: Kinds = {
  'ioredis Cluster': (to, options) => ioredisLink(new IoredisCluster([at(to)], options)),
  'iovalkey Cluster': (to, options) => ioredisLink(new IovalkeyCluster([at(to)], options)),
  'ioredis Cluster with autopipelining': (to) =>
    ioredisLink(new IoredisCluster([at(to)], { enableAutoPipelining: true })),
  'iovalkey Cluster with autopipelining': (to) =>
    ioredisLink(new IovalkeyCluster([at(to)], { enableAutoPipelining: true })),
  'node-redis cluster': (to) => nodeRedisLink(createCluster({ rootNodes: [{ socket: at(to) }] })),
  'a Cluster connection of its own': async (to) => ownLink(new OwnConnection({ cluster: [at(to)] })),
}

function at({ host, port }: Address): Address {
  return { host, port }
}

type IoredisLike = RedisClient & {
  readonly status: string
  once(event: 'ready', listener: () => void): unknown
  disconnect(): void
}

async function ioredisLink(client: IoredisLike): Promise<Link> {
  const connection = connectionOver(client)!
  if (client.status !== 'ready') await new Promise<void>((resolve) => client.once('ready', () => resolve()))
  return { connection, end: () => client.disconnect() }
}

type NodeRedisLike = RedisClient & {
  connect(): Promise<unknown>
  destroy(): unknown
}

async function nodeRedisLink(client: NodeRedisLike): Promise<Link> {
  const connection = connectionOver(client)!
  await client.connect()
  return { connection, end: () => client.destroy() }
}

function ownLink(connection: RedisConnection): Link {
  return { connection, end: () => connection.close() }
}
