import { PolicyError, StoreError } from '@sluice/core'
import { type RedisClient, redisStore, type RedisStoreOptions } from '@sluice/core/redis'
import type { PostgresTableOptions } from '@sluice/postgres'
import type { OpenedStore, RedisNode } from './site.js'

/** The options of the processes' store by which its state is found. */
export type StorePlace = Pick<RedisStoreOptions, 'prefix' | 'groups'> & PostgresTableOptions

/**
 * Opens the store at a URL: redis:// or rediss:// of a server, of any node of a Cluster, which is found out, or with ?name=MASTER of a
 * Sentinel; postgres:// or postgresql://. The first failure to connect is thrown, and no message has the URL, which may hold a password.
 * @throws {PolicyError} INVALID_OPTION; {Error} of the connection, or where no client package is installed.
 */
export function openStore(
  url: string,
  { prefix = 'sluice', groups, ...table }: StorePlace,
): Promise<OpenedStore> {
  const protocol = /^(?:redis|rediss|postgres|postgresql):(?=\/\/.)/.exec(url)?.[0]
  if (protocol === undefined) {
    const what =
      'a store is redis://, rediss:// or postgres://; a machineStore is that of its processes alone'
    throw new PolicyError('INVALID_OPTION', `${what}, and takes no commands`)
  }
  return protocol.startsWith('redis') ? openRedis(url, prefix, groups) : openPostgres(url, table)
}

async function openRedis(url: string, prefix: string, groups: number | undefined): Promise<OpenedStore> {
  const { Redis, Cluster } = await clientPackage()
  const name = new URL(url).searchParams.get('name')
  const given = new Redis(url, SAFE)
  const { host, port, username, password, tls, db } = given.options
  const login = { ...SAFE, username, password, tls }
  const sentinel = { sentinels: [{ host, port }], name, sentinelPassword: password, sentinelTLS: tls }
  const one =
    name === null ? given : new Redis({ ...login, ...sentinel, db, enableTLSForSentinelMode: Boolean(tls) })
  await connected(one)
  const cluster =
    (await isOfCluster(one)) && new Cluster([{ host, port }], { ...CLUSTER, redisOptions: login })
  if (cluster) {
    one.disconnect()
    await connected(cluster)
  }
  const client = cluster || one
  const store = redisStore(client as unknown as RedisClient, {
    prefix,
    ...(groups !== undefined && { groups }),
    denialCache: false,
  })
  const close = async (): Promise<void> => {
    await store.close()
    client.disconnect()
  }
  const masters = () => (cluster ? cluster.nodes!('master') : [one]).map(nodeOf)
  return { store, redis: { prefix, masters }, close }
}

/** The members of a Redis or Cluster of ioredis or iovalkey that are used. */
interface Client {
  readonly options: Readonly<Record<string, unknown>>
  connect(): Promise<void>
  disconnect(): void
  on(event: 'error', listener: (error: Error) => void): unknown
  cluster(subcommand: 'INFO'): Promise<unknown>
  scan(cursor: string, ...options: unknown[]): Promise<readonly [string, readonly string[]]>
  /** Of a Cluster. */
  nodes?(role: 'master'): readonly Client[]
}

interface ClientPackage {
  readonly Redis: new (...options: readonly (string | object)[]) => Client
  readonly Cluster: new (nodes: readonly object[], options: object) => Client
}

/** Whether a server belongs to a Cluster. One that knows no Cluster, or denies the command, does not. */
async function isOfCluster(client: Client): Promise<boolean> {
  try {
    await client.cluster('INFO')
    return true
  } catch (error) {
    if (/^(?:ERR|NOPERM)/.test((error as Error).message)) return false
    throw failed(error as Error)
  }
}

function nodeOf(client: Client): RedisNode {
  return {
    async scan(cursor, match, size) {
      try {
        return await client.scan(cursor, 'MATCH', match, 'COUNT', size)
      } catch (error) {
        throw failed(error as Error)
      }
    },
  }
}

/** Connects a client. @throws {StoreError} the first failure. */
async function connected(client: Client): Promise<void> {
  let first: Error | undefined
  client.on('error', (error) => (first ??= error))
  await client.connect().catch((error: Error) => {
    throw failed(first ?? error)
  })
}

const failed = (cause: Error): Error => new StoreError('STORE_ERROR', cause.message, { cause })

/** A command that was lost is not sent again, and a connection that ends is not made anew. */
const SAFE = {
  lazyConnect: true,
  maxRetriesPerRequest: 0,
  retryStrategy: () => null,
  sentinelRetryStrategy: () => null,
  connectTimeout: 5000,
  enableReadyCheck: false, // INFO needs one more permission
}
const CLUSTER = {
  lazyConnect: true,
  retryDelayOnFailover: 0,
  retryDelayOnClusterDown: 0,
  clusterRetryStrategy: () => null,
  enableReadyCheck: false,
}

/** @throws {Error} ECLIENT where neither package is installed. */
async function clientPackage(): Promise<ClientPackage> {
  const found = await import('ioredis').catch(() => import('iovalkey')).catch(() => undefined)
  if (found) return found as unknown as ClientPackage
  throw missing('Redis', 'ioredis')
}

async function openPostgres(url: string, table: PostgresTableOptions): Promise<OpenedStore> {
  const found = await import('@sluice/postgres').catch(() => undefined)
  if (!found) throw missing('Postgres', '@sluice/postgres pg')
  const store = found.postgresStore(url, { ...table, createTable: false, denialCache: false })
  try {
    await store.ready()
  } catch (error) {
    await store.close()
    throw error
  }
  return { store, close: () => store.close() }
}

function missing(what: string, packages: string): Error {
  const message = `a store in ${what} needs a client: npm install ${packages}, or npx -p @sluice/cli -p ${packages.replace(' ', ' -p ')} sluice ...`
  return Object.assign(new Error(message), { code: 'ECLIENT' })
}
