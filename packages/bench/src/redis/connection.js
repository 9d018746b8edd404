// Everybody has the same client, with the same options.
import { Cluster, Redis } from 'ioredis'

/** @typedef {{ host: string, port: number }} Address */
/** @typedef {Redis} Client As contenders use it; a Cluster takes the same commands. */

/** @param {Address} address */
export function connect({ host, port }) {
  return new Redis({ host, port, maxRetriesPerRequest: 0, retryStrategy: () => null })
}

/** @param {readonly Address[]} nodes */
export function connectCluster(nodes) {
  const redisOptions = { maxRetriesPerRequest: 0 }
  // A process that starts on a busy machine may not hear of the slots within ioredis's second.
  const patient = { slotsRefreshTimeout: 10_000, clusterRetryStrategy: () => 100 }
  return new Cluster([...nodes], { redisOptions, retryDelayOnFailover: 0, ...patient })
}
