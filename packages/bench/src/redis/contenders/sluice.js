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
  'Sluice, three policies': (redis, limit) =>
    deciding(redis, 'three', [
      gcra(optionsOf(limit)),
      gcra({ limit: 1_000_000, window: '1h' }),
      gcra({ limit: 50_000_000, window: '1d' }),
    ]),
  'Sluice, log': (redis, limit) => deciding(redis, 'log', [slidingLog(optionsOf(limit))]),
  'Sluice, 60 sub-buckets': (redis, limit) =>
    deciding(redis, 'sub', [slidingWindow({ ...optionsOf(limit), buckets: 60 })]),
}

/**
 * @param {unknown} redis
 * @param {string} name
 * @param {readonly Policy[]} policies
 * @returns {Contender}
 */
function deciding(redis, name, policies) {
  const store = redisStore(redis, { denialCache: false })
  const limiter = createLimiter({ name, policies, store, onStoreError: 'throw', deadline: '10s' })
  return { call: (key) => limiter.consume(key), allowed: (decision) => decision.allowed }
}

/** @param {Limit} limit */
function optionsOf({ limit, windowMs }) {
  return { limit, window: windowMs }
}
