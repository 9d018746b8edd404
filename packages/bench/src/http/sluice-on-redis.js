// Sluice as the servers use it with Redis: every request is a decision of Redis, for its user.
import { createLimiter, gcra } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'

/** @param {import('./frameworks.js').Given} given */
export function limiterOnRedis({ limit, windowMs, redis }) {
  return createLimiter({
    name: 'http',
    policies: [gcra({ limit, window: windowMs })],
    store: redisStore(redis, { denialCache: false }),
    onStoreError: 'throw',
    deadline: '10s',
  })
}
