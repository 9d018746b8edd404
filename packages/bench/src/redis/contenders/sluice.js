// Decisions of Redis: nothing is answered from a remembered denial, nothing in Redis's place, and no deadline cuts a
// slow answer off, so that what is measured is the way to Redis and back.
import { createLimiter, gcra, slidingLog, slidingWindow } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'

/** @typedef {import('../../contender.js').Limit} Limit */
/** @typedef {import('../../contender.js').Contender} Contender */
/** @typedef {import('@sluice/core').Policy} Policy */

/** @type {Record<string, (redis: unknown, limit: Limit) => Contender>} */
export const sluice = {
  Sluice: (redis, limit) => deciding(redis, 'one', [gcra(optionsOf(limit))]),
  'Sluice, one by one': (redis, limit) =>
    deciding(redis, 'one by one', [gcra(optionsOf(limit))], { groupCommit: false }),
  'Sluice, 16 groups': (redis, limit) =>
    deciding(redis, '16 groups', [gcra(optionsOf(limit))], { groups: 16 }),
  'Sluice, 64 groups': (redis, limit) =>
    deciding(redis, '64 groups', [gcra(optionsOf(limit))], { groups: 64 }),
  'Sluice, leases': (redis, limit) => ({
    ...deciding(redis, 'leases', [gcra(optionsOf(limit))], { leases: LEASES }),
    keptBack: 1,
  }),
  'Sluice, three policies': (redis, limit) =>
    deciding(redis, 'three', [
      gcra(optionsOf(limit)),
      gcra({ limit: 10_000, window: '1d' }),
      gcra({ limit: 100_000, window: '30d' }),
    ]),
  'Sluice, log': (redis, limit) => deciding(redis, 'log', [slidingLog(optionsOf(limit))]),
  'Sluice, 60 sub-buckets': (redis, limit) =>
    deciding(redis, 'sub', [slidingWindow({ ...optionsOf(limit), buckets: 60 })]),
}

/** A size above what one process serves of a key in half of the ttl. @type {import('@sluice/core').LeaseOptions} */
const LEASES = { ttl: '100ms', size: 100_000 }

/**
 * @param {unknown} redis
 * @param {string} name
 * @param {readonly Policy[]} policies
 * @param {{ groupCommit?: boolean, groups?: number, leases?: import('@sluice/core').LeaseOptions }} [options]
 * @returns {Contender}
 */
function deciding(redis, name, policies, { groupCommit = true, groups, leases } = {}) {
  const client = /** @type {import('@sluice/core/redis').RedisClient} */ (redis)
  const store = redisStore(client, { denialCache: false, groupCommit, ...(groups && { groups }) })
  const rest = leases ? { leases } : {}
  const limiter = createLimiter({ name, policies, store, onStoreError: 'throw', deadline: '10s', ...rest })
  return { call: (key) => limiter.consume(key), allowed: (decision) => decision.allowed }
}

/** @param {Limit} limit */
function optionsOf({ limit, windowMs }) {
  return { limit, window: windowMs }
}
