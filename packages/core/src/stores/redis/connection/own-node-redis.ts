import { StoreError } from '../../../values/errors.js'
import type { Endpoint } from './endpoint.js'
import { isRefusedBy } from '../clients/failure.js'
import { type NodeRedisClient, nodeRedisConnection } from '../clients/node-redis.js'
import { backOffMs, every, onDuplicate, type Opened, SILENCE_MS } from './opened.js'

interface NodeRedisPackage {
  createClient(options: object): OwnNodeRedis
  createCluster(options: object): OwnNodeRedis
}

interface OwnNodeRedis extends NodeRedisClient {
  readonly isOpen: boolean
  duplicate(): OwnNodeRedis
  /** Of a single client. */
  unref?(): void
  ping?(): Promise<unknown>
  /** Of a cluster. */
  readonly masters?: readonly Node[]
  readonly pubSubNode?: Node | undefined
}

interface Node {
  readonly client?: OwnNodeRedis
}

/**
 * Makes a client of node-redis, which never sends a command twice, and begins to connect. Returns the connection over it. `first`
 * is the outcome of the first attempt. Calls on a cluster wait until it is connected, as it takes none before it knows its nodes;
 * a single client queues them itself.
 * @throws {StoreError} CLIENT_MISSING for Sentinels, which need ioredis or iovalkey.
 */
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
  ping(client, () => ended)
  // A client that is ended while its socket connects keeps that socket, and would wait for the server's greeting on it.
  client.on('connect', () => ended && client.destroy())
  const failed = new Promise<never>((_, reject) => client.once('error', reject))
  let connected = untilConnected(client, () => ended)
  const first = Promise.race([connected, failed])
  first.catch(() => {}) // rejects only for those who await it
  return {
    ...connection,
    // A client queues calls while it connects; a cluster takes them only once it knows its nodes.
    ...(cluster && {
      evalsha: async (...args) => (await connected, connection.evalsha(...args)),
      eval: async (...args) => (await connected, connection.eval(...args)),
    }),
    /**
     * Reconnects if the server has become a replica (READONLY): to the server to which the address leads now. Returns the promise of
     * the new connection, to each call that was refused on the old one. Undefined for any other error, and in a Cluster.
     */
    afterStepDown(error) {
      if (cluster || !isRefusedBy('READONLY', error)) return undefined
      if (client.isReady) {
        client.destroy()
        connected = untilConnected(client, () => ended)
      }
      return connected
    },
    first,
    /**
     * Ends the client. The clients of nodes to which a cluster is still connecting connect first, and the cluster no longer knows
     * them then; so they are ended by themselves once it has connected.
     */
    close() {
      ended = true
      const nodes = client.masters?.map((node) => node.client) ?? []
      client.destroy()
      connected.then(() => nodes.forEach((node) => node?.destroy())).catch(() => {}) // node-redis 5 ends none twice
    },
  }
}

/**
 * Pings a client, and the clients of a cluster's nodes, until `ended`: a connection on which no byte comes is closed after
 * `socketTimeout`. Has them, and their duplicates, keep no process alive, as the clients' own pings (`pingInterval`) would. A
 * cluster makes the clients of its nodes as it learns of them, so they are looked up each time.
 */
function ping(client: OwnNodeRedis, ended: () => boolean): void {
  client.unref?.()
  onDuplicate(client, (made) => ping(made, () => !made.isOpen))
  const asked = new Set<OwnNodeRedis>()
  every(SILENCE_MS / 3, () => {
    for (const node of [{ client }, ...(client.masters ?? []), client.pubSubNode]) {
      const one = node?.client
      one?.unref?.()
      // One at a time: what is written counts as activity too, and would hide that no reply comes.
      if (!one?.isReady || asked.has(one)) continue
      const answered = (): void => void asked.delete(one)
      asked.add(one)
      one.ping!().then(answered, answered)
    }
    return ended()
  })
}

/**
 * Returns the options of an endpoint as node-redis names them, with this package's defaults: short pauses between attempts to
 * connect, and an end of the connection when no byte came for SILENCE_MS.
 */
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
      // Idle time counts too, hence `ping`.
      socketTimeout: SILENCE_MS,
    },
    commandsQueueMaxLength: 10_000,
  }
}

/**
 * Connects, and tries again after short pauses until it succeeds or `ended()` is true. A cluster gives up by itself when no root
 * node answers, while a single client goes on. A client that is ended while it connects is ended once more afterwards, as it would
 * keep its sockets.
 */
async function untilConnected(client: OwnNodeRedis, ended: () => boolean): Promise<void> {
  for (let times = 1; !ended(); times++) {
    try {
      await client.connect()
      if (!ended()) return
    } catch {
      // The next attempt follows.
    }
    if (ended()) return client.destroy()
    await new Promise((resolve) => setTimeout(resolve, shortBackOffMs(times)))
  }
}

/**
 * Returns the milliseconds before attempt number `times` to connect, at most 80: node-redis cannot be ended while it waits for
 * its next attempt, and keeps the process alive until then.
 */
function shortBackOffMs(times: number): number {
  return Math.min(backOffMs(times), 80)
}
