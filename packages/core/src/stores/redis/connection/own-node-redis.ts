import { StoreError } from '../../../values/errors.js'
import type { Endpoint } from './endpoint.js'
import { type NodeRedisClient, nodeRedisConnection } from '../clients/node-redis.js'
import { backOffMs, type Opened, SILENCE_MS } from './opened.js'

interface NodeRedisPackage {
  createClient(options: object): OwnNodeRedis
  createCluster(options: object): OwnNodeRedis
}

interface OwnNodeRedis extends NodeRedisClient {
  /** Of a cluster. */
  readonly masters?: readonly { readonly client?: { destroy(): void } }[]
}

/** Makes a node-redis client, which never repeats a command. It connects at once. */
export function openNodeRedis(nodeRedis: NodeRedisPackage, options: Endpoint): Opened {
  if (options.sentinels) {
    const what = 'a connection by Sentinel needs ioredis or iovalkey: npm install ioredis'
    throw new StoreError('CLIENT_MISSING', `${what}, or hand in a client`)
  }
  const { cluster, host, port, ...rest } = options
  const defaults = clientOptions(rest)
  const rootNodes = cluster?.map((address) => ({ socket: { ...defaults.socket, ...address } }))
  const client = rootNodes
    ? nodeRedis.createCluster({ rootNodes, defaults })
    : nodeRedis.createClient({ ...defaults, socket: { host, port, ...defaults.socket } })
  const connection = nodeRedisConnection(client)
  let ended = false
  // A client that is ended while its socket connects keeps that socket, and would wait for the server's greeting on it.
  client.on('connect', () => ended && client.destroy())
  const failed = new Promise<never>((_, reject) => client.once('error', reject))
  const connected = untilConnected(client, () => ended)
  const first = Promise.race([connected, failed])
  first.catch(() => {}) // rejects only for those who await it
  return {
    ...connection,
    // A client queues calls while it connects; a cluster takes them only once it knows its nodes.
    ...(cluster && {
      evalsha: async (...args) => (await connected, connection.evalsha(...args)),
      eval: async (...args) => (await connected, connection.eval(...args)),
    }),
    first,
    close() {
      ended = true
      // Nodes to which a cluster is still connecting finish that first, and the cluster no longer knows them then.
      const nodes = client.masters?.map((node) => node.client) ?? []
      client.destroy()
      void connected.then(() => nodes.forEach((node) => node?.destroy()))
    },
  }
}

/** The options of an endpoint as node-redis names them, with our defaults. */
function clientOptions(options: Endpoint) {
  const { username, password, db, tls, path, connectTimeout, keepAlive, family } = options
  return {
    name: options.connectionName,
    username,
    password,
    database: db,
    socket: {
      connectTimeout,
      reconnectStrategy: (retries: number) => shortBackOffMs(retries + 1),
      ...(tls && { ...tls, tls: true }),
      ...(path !== undefined && { path }),
      keepAliveInitialDelay: keepAlive,
      family,
      // Idle time counts too, so pings keep replies coming.
      socketTimeout: SILENCE_MS,
    },
    pingInterval: SILENCE_MS / 3,
    commandsQueueMaxLength: 10_000,
  }
}

/**
 * Connects, and tries again until it succeeds or `ended` is true: a cluster gives up when no root node answers, while a
 * client goes on by itself.
 */
async function untilConnected(client: OwnNodeRedis, ended: () => boolean): Promise<void> {
  for (let times = 1; !ended(); times++) {
    try {
      await client.connect()
      if (!ended()) return
    } catch {
      // The next attempt follows.
    }
    // A client that is ended while it connects first finishes or fails, and then keeps its sockets.
    if (ended()) return client.destroy()
    await new Promise((resolve) => setTimeout(resolve, shortBackOffMs(times)))
  }
}

/** node-redis cannot be ended while it waits for its next attempt, and keeps the process alive until then. */
function shortBackOffMs(times: number): number {
  return Math.min(backOffMs(times), 80)
}
