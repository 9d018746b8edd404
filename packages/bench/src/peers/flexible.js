// rate-limiter-flexible, as its documents have it used with Redis.
import { RateLimiterRedis } from 'rate-limiter-flexible'

/**
 * @param {import('ioredis').Redis} storeClient
 * @param {string} keyPrefix
 * @param {{ limit: number, windowMs: number }} limit
 * @param {Partial<import('rate-limiter-flexible').IRateLimiterRedisOptions>} [options]
 */
export function flexibleOnRedis(storeClient, keyPrefix, { limit, windowMs }, options) {
  const duration = windowMs / 1000
  return new RateLimiterRedis({ storeClient, keyPrefix, points: limit, duration, ...options })
}
