import type { Socket } from 'node:net'
import type { Endpoint } from './endpoint.js'
import { isRefusedBy } from '../clients/failure.js'
import { hearLaterErrors } from '../clients/error-listener.js'
import { type IoredisClient, ioredisConnection } from '../clients/ioredis.js'
import { backOffMs, every, onDuplicate, type Opened, SILENCE_MS } from './opened.js'

interface IoredisPackage {
  readonly Redis: new (options: object) => IoredisClient
  readonly Cluster: new (nodes: readonly object[], options: object) => IoredisClient
}

/**
 * Makes a client of ioredis or iovalkey (whose package has these classes) that sends no command twice and reconnects soon after
 * Redis is back. It connects at once. Returns the connection over it. `first` is the outcome of the first attempt: a client that
 * is closed before it was ready reports no error by itself, so that counts as one.
 */
export function openIoredis({ Redis, Cluster }: IoredisPackage, options: Endpoint): Opened {
  const { cluster, ...rest } = options
  let refusing: Socket | undefined
  /**
   * Whether the client should reconnect because of an error: if the master has become a replica, to the server that Sentinel or DNS
   * names now. True once for each connection, as the client adds a listener for its end each time.
   */
  const reconnectOnError = (error: Error): boolean => {
    const { stream } = client as Tended
    const isFirst = stream !== refusing && isRefusedBy('READONLY', error)
    if (isFirst) refusing = stream
    return isFirst
  }
  const client = cluster
    ? new Cluster(cluster, { ...rest, ...CLUSTER, redisOptions: { ...rest, ...NODE } })
    : new Redis({ ...rest, ...STANDALONE, reconnectOnError })
  const connection = ioredisConnection(client)
  const closed = new Promise<never>((_, reject) => {
    client.once('close', () => reject(new Error('closed before it was ready')))
  })
  const first = Promise.race([connection.connect(), closed])
  first.catch(() => {}) // rejects only for those who await it
  let timesReady = 0
  client.on('ready', () => timesReady++)
  tend(client as Tended)
  return {
    ...connection,
    ...(!cluster && { afterStepDown: stepDownOf(client) }),
    timesReady: () => timesReady,
    first,
    /** Ends the client. A Cluster leaves connections by which it learns the slots to end by themselves, within `SILENCE_MS`. */
    close: () => client.disconnect(),
  }
}

/**
 * Makes the function that is asked about the error of each failed call. READONLY means that the master has become a replica. The
 * client then closes its connection and connects to the new master (`reconnectOnError`): the function returns a promise that the
 * old connection is closed, after which the call can be sent again. It returns undefined for any other error.
 */
function stepDownOf(client: IoredisClient): (error: unknown) => Promise<void> | undefined {
  let closing: Promise<void> | undefined
  return (error) => {
    if (!isRefusedBy('READONLY', error)) return undefined
    if (client.status !== 'ready') return Promise.resolve()
    return (closing ??= new Promise<void>((resolve) => client.once('close', resolve)).finally(
      () => (closing = undefined),
    ))
  }
}

/**
 * Ends silent connections of a client, and has it keep no process alive, neither by its connections nor by the pauses before it
 * connects anew. Does the same for the nodes and the subscriber of a Cluster, and for duplicates of the client.
 */
function tend(client: Tended): void {
  client.on('connect', () => client.stream && endSilence(client, client.stream))
  client.on('reconnecting', () => client.reconnectTimeout?.unref())
  client.on('error', () => hearLaterErrors(client))
  client.on('+node', tend)
  // A Cluster makes its subscriber anew without an event.
  if (client.isCluster)
    every(SILENCE_MS / LOOKS, () => {
      client.subscriber.getInstance()?.stream?.unref()
      return client.status === 'end'
    })
  onDuplicate(client, tend)
}

/**
 * Closes the connection to one server when a reply is due and no byte has come for `SILENCE_MS`: a peer that vanished closes no
 * socket, and TCP notices only after a quarter of an hour. A timer looks eight times in that span and counts the looks in a row
 * without a new byte. It counts looks and not time, because replies lie unread in a process that was busy for a second, and a
 * late timer runs before they are read. `socketTimeout` is not used for that reason.
 */
function endSilence(client: Tended, stream: Socket): void {
  stream.unref()
  let read = -1
  let silentLooks = 0
  every(SILENCE_MS / LOOKS, () => {
    const isSilent = client.commandQueue.length > 0 && stream.bytesRead === read
    read = stream.bytesRead
    silentLooks = isSilent ? silentLooks + 1 : 0
    if (silentLooks > LOOKS) stream.destroy(new Error(`no byte of a reply came for ${SILENCE_MS} ms`))
    return stream.destroyed
  })
}

/** A client, with what of it keeps a process alive, and the commands that were written and have no reply. */
interface Tended extends IoredisClient {
  duplicate(...options: object[]): Tended
  readonly stream?: Socket
  readonly commandQueue: ArrayLike<unknown>
  readonly reconnectTimeout?: NodeJS.Timeout | null
  /** Of a Cluster. */
  readonly subscriber: { getInstance(): Tended | null }
}

const LOOKS = 8

const NODE = {
  // A Sentinel that does not answer is skipped.
  sentinelCommandTimeout: SILENCE_MS,
  // Rejects all unanswered commands as soon as the connection closes: none is repeated (ioredis.ts), and calls that wait
  // for a connection wait for one attempt.
  maxRetriesPerRequest: 0,
  lazyConnect: false,
  // INFO needs one more permission, and its reply under load (BUSY) would close a working connection. A server that is
  // still loading reports that to each call.
  enableReadyCheck: false,
  // How long a server that does not answer may keep the process alive after close(), in milliseconds.
  disconnectTimeout: 20,
}

const STANDALONE = {
  ...NODE,
  retryStrategy: backOffMs,
  sentinelRetryStrategy: backOffMs,
}

const CLUSTER = {
  clusterRetryStrategy: backOffMs,
  // Repeats unanswered commands after this delay; 0: never.
  retryDelayOnFailover: 0,
  // A wait inside the client could outlast the deadline, and charge for a call that was decided without Redis.
  retryDelayOnClusterDown: 0,
  slotsRefreshTimeout: SILENCE_MS,
  enableReadyCheck: false,
}
