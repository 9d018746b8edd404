import { backOffMs, CONNECT_MS, SILENCE_MS } from './back-off.js'
import type { RedisOptions } from './endpoint.js'
import { isReadOnly } from '../clients/failure.js'
import { ioredisConnection } from '../clients/ioredis.js'
import type { Opened } from './opened.js'
import type { IoredisPackage } from './packages.js'
import { refreshersOf } from './refreshers.js'
import { afterStepDown } from './step-down.js'

/** Makes an ioredis or iovalkey client that sends nothing twice and is back soon after Redis is. It connects at once. */
export function openIoredis({ Redis, Cluster }: IoredisPackage, options: RedisOptions): Opened {
  const { cluster, ...rest } = options
  const client = cluster
    ? new Cluster(cluster, { ...rest, ...CLUSTER, redisOptions: { ...DEFAULTS, ...rest, ...NODE } })
    : new Redis({ ...DEFAULTS, ...rest, ...STANDALONE })
  const connection = ioredisConnection(client)
  const first = new Promise<void>((resolve, reject) => {
    client.once('ready', resolve)
    client.once('error', reject)
    client.once('close', () => reject(new Error('the connection was closed before it was ready')))
  })
  first.catch(() => {}) // a rejection is for those who wait for it
  let timesReady = 0
  client.on('ready', () => timesReady++)
  const endRefreshers = cluster && refreshersOf(client)
  return {
    connection: cluster ? connection : afterStepDown(client, connection),
    isReady: () => client.status === 'ready',
    timesReady: () => timesReady,
    first,
    end() {
      client.disconnect()
      endRefreshers?.()
    },
  }
}

const DEFAULTS = {
  connectTimeout: CONNECT_MS,
  // A peer that vanished closes nothing; without this TCP finds out after a quarter of an hour.
  socketTimeout: SILENCE_MS,
  // A Sentinel that stands still is passed over.
  sentinelCommandTimeout: SILENCE_MS,
}

const NODE = {
  // Rejects everything unanswered as soon as the connection closes: nothing is sent twice (replay.ts), and calls that
  // wait for a connection wait for one attempt.
  maxRetriesPerRequest: 0,
  enableOfflineQueue: true,
  enableAutoPipelining: false,
  lazyConnect: false,
  commandTimeout: undefined,
  reconnectOnError: null,
  // INFO is one permission more, and its answer under load (BUSY) would close a connection that works. A server that
  // is still loading says so to each call.
  enableReadyCheck: false,
  // How long a server that stands still may keep the process alive after close().
  disconnectTimeout: 20,
}

const STANDALONE = {
  ...NODE,
  retryStrategy: backOffMs,
  sentinelRetryStrategy: backOffMs,
  // A master that became a replica: connect anew, to whom Sentinel or DNS name by now.
  reconnectOnError: isReadOnly,
}

const CLUSTER = {
  clusterRetryStrategy: backOffMs,
  // Sends what was unanswered again; 0 is never.
  retryDelayOnFailover: 0,
  // Waiting inside the client would outlast the deadline and charge for a call that was answered long ago.
  retryDelayOnClusterDown: 0,
  slotsRefreshTimeout: SILENCE_MS,
  scaleReads: 'master',
  clusterNodeRetryStrategy: undefined,
  enableOfflineQueue: true,
  enableAutoPipelining: false,
  enableReadyCheck: false,
  lazyConnect: false,
}
