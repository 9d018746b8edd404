// Each as its documentation has it used, or as its own middleware uses its store.
import FastifyStore from '@fastify/rate-limit/store/RedisStore.js'
import { ThrottlerStorageRedisService } from '@nest-lab/throttler-storage-redis'
import KoaLimiter from 'koa-ratelimit/limiter/redis.js'
import { RateLimiterRes, RateLimiterUnion } from 'rate-limiter-flexible'
import { flexibleOnRedis } from '../../peers/flexible.js'
import { readyRateLimitRedis } from '../../peers/rate-limit-redis.js'

/** @typedef {import('../../contender.js').Limit} Limit */
/** @typedef {import('../../contender.js').Contender} Contender */
/** @typedef {import('../connection.js').Client} Client */

/** @type {Record<string, (redis: Client, limit: Limit) => Contender | Promise<Contender>>} */
export const peers = {
  'rate-limiter-flexible': (redis, limit) => {
    const limiter = flexibleOnRedis(redis, 'rlf', limit)
    const isDenial = (/** @type {unknown} */ error) => error instanceof RateLimiterRes
    return { call: (key) => limiter.consume(key), allowed: () => true, isDenial }
  },
  'rate-limiter-flexible union': (redis, limit) => {
    const each = ['a', 'b', 'c'].map((name) => flexibleOnRedis(redis, name, limit))
    const union = new RateLimiterUnion(...each)
    const isDenial = (/** @type {any} */ error) =>
      Object.values(error).every((one) => one instanceof RateLimiterRes)
    return { call: (key) => union.consume(key), allowed: () => true, isDenial }
  },
  'rate-limit-redis': async (redis, { limit, windowMs }) => {
    const store = await readyRateLimitRedis(redis, 'rlr:', windowMs)
    return { call: (key) => store.increment(key), allowed: ({ totalHits }) => totalHits <= limit }
  },
  'koa-ratelimit': (db, { limit, windowMs }) => {
    const call = (/** @type {string} */ id) =>
      new KoaLimiter({ db, id, max: limit, duration: windowMs }).get()
    return { call, allowed: ({ remaining }) => remaining > 0 }
  },
  '@nest-lab/throttler-storage-redis': (redis, { limit, windowMs }) => {
    const storage = new ThrottlerStorageRedisService(redis)
    const call = (/** @type {string} */ key) => storage.increment(key, windowMs, limit, windowMs, 'nest')
    return { call, allowed: ({ isBlocked }) => !isBlocked }
  },
  '@fastify/rate-limit': (redis, { limit, windowMs }) => {
    const store = new FastifyStore(false, false, redis, 'fastify:')
    const call = (/** @type {string} */ key) =>
      new Promise((resolve, reject) => {
        store.incr(key, (error, result) => (error ? reject(error) : resolve(result.current)), windowMs, limit)
      })
    return { call, allowed: (hits) => hits <= limit }
  },
}
