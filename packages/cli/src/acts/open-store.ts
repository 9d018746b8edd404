import { PolicyError, StoreError } from '@sluice/core'
import { redisStore, type RedisStoreOptions } from '@sluice/core/redis'
import type { PostgresTableOptions } from '@sluice/postgres'
import type * as ioredis from 'ioredis'
import type { OpenedStore } from './site.js'

/** The options of the processes' store by which its state is found. */
export type StoreSettings = Pick<RedisStoreOptions, 'prefix' | 'groups'> & PostgresTableOptions

/**
 * Opens the store at a URL: redis:// or rediss:// of a server, of any node of a Cluster, which is found out, or with ?name=MASTER of a
 * Sentinel; postgres:// or postgresql://. No message has the URL, which may hold a password.
 * @throws {PolicyError} INVALID_OPTION, also for a setting of the other kind of store; {StoreError} the first failure; {Error} ECLIENT
 * where no client package is installed.
 */
export async function openStore(url: string, settings: StoreSettings = {}): Promise<OpenedStore> {
  const isRedis = /^rediss?:\/\/./.test(url)
  if (!isRedis && !/^postgres(?:ql)?:\/\/./.test(url)) {
    const what =
      'a store is redis://, rediss:// or postgres://; a machineStore is that of its processes alone'
    throw new PolicyError('INVALID_OPTION', `${what}, and takes no commands`)
  }
  if (!URL.canParse(url)) {
    const how = "in a password write '#' as %23, '/' as %2F and '?' as %3F, and a port is at most 65535"
    throw new PolicyError('INVALID_OPTION', `the URL of the store is not valid: ${how}`)
  }
  const { prefix = 'sluice', groups, ...table } = settings
  const ofOtherKind = isRedis ? ['schema', 'table'] : ['prefix', 'groups']
  const wrong = ofOtherKind.find((name) => name in settings)
  if (wrong !== undefined)
    throw new PolicyError('INVALID_OPTION', `a store in ${isRedis ? 'Redis' : 'Postgres'} has no ${wrong}`)
  return isRedis
    ? openRedis(url, { prefix, ...(groups !== undefined && { groups }), denialCache: false })
    : openPostgres(url, table)
}

/**
 * Opens a store in Redis, by ioredis or else iovalkey. Connects to the one server at the URL or, with the parameter `name`, to the
 * master of that name which the Sentinel at the URL reports. If that server belongs to a Cluster, connects to the Cluster instead.
 */
async function openRedis(url: string, options: RedisStoreOptions): Promise<OpenedStore> {
  const found = await import('ioredis').catch(() => import('iovalkey')).catch(() => undefined)
  if (!found) throw missingClient('Redis', 'ioredis')
  const client = await connectedClient(found as unknown as typeof ioredis, url)
  const store = redisStore(client, options)
  const scanOf = (node: ioredis.Redis) => (cursor: string, match: string, most: number) =>
    node.scan(cursor, 'MATCH', match, 'COUNT', most).catch((error: Error) => {
      throw storeError(error)
    })
  const masters = () =>
    (client.isCluster ? (client as ioredis.Cluster).nodes('master') : [client as ioredis.Redis]).map(scanOf)
  const close = async (): Promise<void> => {
    await store.close()
    client.disconnect()
  }
  return { store, redis: { prefix: options.prefix!, masters }, close }
}

/** Connects to the server at the URL, to the master that a Sentinel there reports, or to the Cluster to which that server belongs. */
async function connectedClient(
  { Redis, Cluster }: typeof ioredis,
  url: string,
): Promise<ioredis.Redis | ioredis.Cluster> {
  const sentinelName = new URL(url).searchParams.get('name')
  const atUrl = new Redis(url, SAFE)
  const { host = '', port = 0, username = '', password = '', tls, db = 0 } = atUrl.options
  const login = { ...SAFE, ...(password && { username, password }), ...(tls && { tls }) }
  const masterBySentinel = (name: string): ioredis.Redis => {
    const sentinel = { sentinels: [{ host, port }], name, db, sentinelRetryStrategy: () => null }
    const overTls = tls && { sentinelTLS: tls, enableTLSForSentinelMode: true }
    return new Redis({ ...login, ...sentinel, ...overTls, sentinelPassword: password })
  }
  const server = sentinelName === null ? atUrl : masterBySentinel(sentinelName)
  await connect(server, tls !== undefined)
  // A server that knows no Cluster, or denies the command, belongs to none.
  const clusterInfo = await server.cluster('INFO').catch((error: Error) => {
    if (!/^(?:ERR|NOPERM)/.test(error.message)) throw storeError(error)
  })
  if (!clusterInfo) return server
  server.disconnect()
  const noRetries = { clusterRetryStrategy: () => null, retryDelayOnFailover: 0, retryDelayOnClusterDown: 0 }
  const cluster = new Cluster([{ host, port }], { ...SAFE, ...noRetries, redisOptions: login })
  await connect(cluster, tls !== undefined)
  return cluster
}

/** Connects a client. @throws {StoreError} the first failure. */
async function connect(client: ioredis.Redis | ioredis.Cluster, isTls: boolean): Promise<void> {
  let first: Error | undefined
  client.on('error', (error) => (first ??= error))
  await client.connect().catch((error: Error) => {
    throw storeError(first ?? error, isTls)
  })
}

/** The error for a failure of a client. Its message adds advice, if the failure may come of TLS: of its use, lack or certificate. */
function storeError(cause: Error & { code?: string }, isTls?: boolean): Error {
  const { code = '', message } = cause
  const advice = /CERT|SIGNATURE|ISSUER/.test(code)
    ? '; an authority of your own is named by NODE_EXTRA_CA_CERTS'
    : isTls && code === 'ETIMEDOUT'
      ? '; a server without TLS is redis://, not rediss://'
      : isTls === false && /reset|closed/i.test(message)
        ? '; a server with TLS is rediss://, not redis://'
        : ''
  return new StoreError('STORE_ERROR', message + advice, { cause })
}

/** A command that was lost is not sent again, a connection that ends is not made anew, and INFO would need one more permission. */
const SAFE = {
  lazyConnect: true,
  maxRetriesPerRequest: 0,
  retryStrategy: () => null,
  connectTimeout: 5000,
  enableReadyCheck: false,
}

/** Opens a store in Postgres, whose table must be there. A store that is not ready is closed again before this rejects. */
async function openPostgres(url: string, table: PostgresTableOptions): Promise<OpenedStore> {
  const found = await import('@sluice/postgres').catch(() => undefined)
  if (!found) throw missingClient('Postgres', '@sluice/postgres -p pg')
  const store = found.postgresStore(url, { ...table, createTable: false, denialCache: false })
  const close = () => store.close()
  await store.ready().catch((error: unknown) => close().then(() => Promise.reject(error)))
  return { store, close }
}

function missingClient(what: string, packages: string): Error {
  const message = `a store in ${what} needs a client: npx -p @sluice/cli -p ${packages} sluice ..., or npm install it`
  return Object.assign(new Error(message), { code: 'ECLIENT' })
}
