// rate-limit-redis, the store of express-rate-limit, with or without its middleware.
import { RedisStore } from 'rate-limit-redis'

/**
 * @param {import('ioredis').Redis} redis
 * @param {string} [prefix]
 */
export function rateLimitRedis(redis, prefix) {
  const sendCommand = /** @type {(...command: string[]) => Promise<any>} */ (
    (command, ...args) => redis.call(command, ...args)
  )
  return new RedisStore({ sendCommand, ...(prefix !== undefined && { prefix }) })
}

/**
 * The store alone, ready for calls of `increment`.
 * @param {import('ioredis').Redis} redis
 * @param {string} prefix
 * @param {number} windowMs
 */
export async function readyRateLimitRedis(redis, prefix, windowMs) {
  const store = rateLimitRedis(redis, prefix)
  await store.init(/** @type {any} */ ({ windowMs }))
  return store
}
