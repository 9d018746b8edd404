// Logs that are full, ours and the sorted set of most articles: one entry leaves and one comes with each call.
import { createLimiter, slidingLog } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { HOUR, KEYS, START } from './injected-time.js'

const FILLS = 100

/**
 * A log in which one entry leaves and one comes with each call.
 * @param {number} limit
 * @returns {import('./contenders.js').Contenders[string]}
 */
export function fullLog(limit) {
  return (redis, name) => {
    let now = START
    const policies = [slidingLog({ limit, window: '1h' })]
    const limiter = createLimiter({
      name,
      policies,
      store: redisStore(redis, { clock: () => now, denialCache: false }),
      deadline: '10s',
    })
    return {
      call(key) {
        now += HOUR / limit / KEYS
        return limiter.consume(key)
      },
      async fill(key) {
        now = START - HOUR
        for (let i = 0; i < FILLS; i++) {
          now += HOUR / FILLS
          await limiter.consume(key, { cost: limit / FILLS })
        }
      },
      injected: true,
    }
  }
}

/**
 * The log of most articles: a member of a sorted set for each call, named by something unique, as its instant alone
 * would lose calls of the same tick. The instants come from the caller's clock.
 * @param {number} limit
 * @returns {import('./contenders.js').Contenders[string]}
 */
export function sortedSet(limit) {
  const script = `
    redis.call('ZREMRANGEBYSCORE', KEYS[1], 0, ARGV[1] - ARGV[2])
    if redis.call('ZCARD', KEYS[1]) < tonumber(ARGV[3]) then
      redis.call('ZADD', KEYS[1], ARGV[1], ARGV[4])
      redis.call('PEXPIRE', KEYS[1], ARGV[2] / 1000)
      return 1
    end
    return 0`
  return (redis, name) => {
    const sha = redis.script('LOAD', script)
    let now = START
    let calls = 0
    return {
      async call(key) {
        now += HOUR / limit / KEYS
        return redis.evalsha(
          /** @type {string} */ (await sha),
          1,
          `${name}:${key}`,
          now,
          HOUR,
          limit,
          `c${calls++}`,
        )
      },
      async fill(key) {
        const entries = Array.from({ length: limit }, (_, i) => [
          START - HOUR + ((i + 1) * HOUR) / limit,
          `f${i}`,
        ])
        for (let i = 0; i < limit; i += 1000) {
          await redis.zadd(`${name}:${key}`, ...entries.slice(i, i + 1000).flat())
        }
        await redis.pexpire(`${name}:${key}`, HOUR / 1000)
      },
    }
  }
}
