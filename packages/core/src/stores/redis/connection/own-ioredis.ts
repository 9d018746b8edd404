import type { Socket } from 'node:net'
import * as timers from 'node:timers'
import type { Endpoint } from './endpoint.js'
import { isRefusedBy } from '../clients/failure.js'
import { type IoredisClient, ioredisConnection } from '../clients/ioredis.js'
import { backOffMs, type Opened, SILENCE_MS } from './opened.js'

// Fake timers are put in place of the globals and of the module's functions, and read no byte while they move.
const { clearInterval, setInterval } = timers

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
  const client = cluster
    ? new Cluster(cluster, { ...rest, ...CLUSTER, redisOptions: { ...rest, ...NODE } })
    : new Redis({ ...rest, ...STANDALONE })
  const connection = ioredisConnection(client)
  const closed = new Promise<never>((_, reject) => {
    client.once('close', () => reject(new Error('the connection was closed before it was ready')))
  })
  const first = Promise.race([connection.connect(), closed])
  first.catch(() => {}) // rejects only for those who await it
  let timesReady = 0
  client.on('ready', () => timesReady++)
  const endRefreshers = cluster && endRefreshersOf(client)
  if (cluster) client.on('+node', endSilence)
  else endSilence(client)
  return {
    ...connection,
    ...(!cluster && { afterStepDown: stepDownOf(client) }),
    timesReady: () => timesReady,
    first,
    /** Ends the client, and in a Cluster also the connections that it makes to learn the slots, which it does not end itself. */
    close() {
      client.disconnect()
      endRefreshers?.()
    },
  }
}

/**
 * Makes the function to which each failed call is passed. READONLY means that the master has become a replica. The client then
 * closes its connection and connects to the new master (`reconnectOnError`): the function returns a promise that the old
 * connection is closed, after which the call can be repeated. Undefined for any other error.
 */
function stepDownOf(client: IoredisClient): (error: unknown) => Promise<void> | undefined {
  let closing: Promise<void> | undefined
  return (error) => {
    if (!isRefusedBy('READONLY', error)) return undefined
    if (client.status !== 'ready') return Promise.resolve()
    closing ??= new Promise((resolve) => {
      client.once('close', () => {
        closing = undefined
        resolve()
      })
    })
    return closing
  }
}

/**
 * Closes the connection to one server when a reply is due and no byte has come for `SILENCE_MS`: a peer that vanished closes no
 * socket, and TCP notices only after a quarter of an hour. A timer looks eight times in that span and counts the looks in a row
 * without a new byte. It counts looks and not time, because replies lie unread in a process that was busy for a second, and a
 * late timer runs before they are read. `socketTimeout` is not used for that reason.
 */
function endSilence(client: IoredisClient): void {
  client.on('connect', () => {
    const connected = client as Connected
    const { stream } = connected
    let read = -1
    let silentLooks = 0
    const timer = setInterval(() => {
      const isSilent = connected.commandQueue.length > 0 && stream.bytesRead === read
      read = stream.bytesRead
      silentLooks = isSilent ? silentLooks + 1 : 0
      if (silentLooks > LOOKS) stream.destroy(new Error(`no byte of a reply came for ${SILENCE_MS} ms`))
      if (stream.destroyed) clearInterval(timer)
    }, SILENCE_MS / LOOKS)
    timer.unref()
  })
}

/** A client with a connection, and the commands that were written to it and have no reply. */
interface Connected extends IoredisClient {
  readonly stream: Socket
  readonly commandQueue: ArrayLike<unknown>
}

const LOOKS = 8

/**
 * Returns a function that ends the connections over which a Cluster client of ioredis refreshes its list of slots. The client
 * does not end them when it is ended, and one to a node that does not answer would keep the process alive. The client makes them
 * by `duplicate` of a node, which is wrapped here to note each.
 */
function endRefreshersOf(client: IoredisClient): () => void {
  const refreshers = new Set<IoredisClient>()
  client.on('+node', (node: IoredisClient) => {
    const duplicate = node.duplicate.bind(node)
    Object.assign(node, {
      duplicate: (...options: object[]) => {
        const refresher = duplicate(...options)
        refreshers.add(refresher)
        refresher.on('end', () => refreshers.delete(refresher))
        return refresher
      },
    })
  })
  return () => {
    for (const refresher of refreshers) refresher.disconnect()
  }
}

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
  // The master became a replica: reconnect to the server that Sentinel or DNS names now.
  reconnectOnError: (error: Error) => isRefusedBy('READONLY', error),
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
