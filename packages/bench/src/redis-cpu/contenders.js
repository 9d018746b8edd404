// Who is measured: every algorithm of ours, and what others run in Redis for the same.
import { createLimiter, fixedWindow, gcra, slidingLog, slidingWindow } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { RateLimiterUnion } from 'rate-limiter-flexible'
import { measured } from '../algorithms.js'
import { flexibleOnRedis } from '../peers/flexible.js'
import { readyRateLimitRedis } from '../peers/rate-limit-redis.js'
import { fullLog, sortedSet } from './full-logs.js'
import { HOUR, KEYS, START } from './injected-time.js'

/**
 * @typedef {import('ioredis').Redis} Redis
 * @typedef {import('@sluice/core').Policy} Policy
 * @typedef {object} Contender
 * @property {(key: string) => Promise<unknown>} call One decision about a call of cost 1.
 * @property {(key: string) => Promise<unknown>} [fill] Brings a key into the state that is measured.
 * @property {boolean} [injected] Its clock is injected, so it does not read Redis's.
 * @typedef {Record<string, (redis: Redis, name: string) => Contender>} Contenders
 */

const LOTS = 1_000_000
const WINDOW_MS = HOUR / 1000
const HOURLY = { limit: LOTS, windowMs: WINDOW_MS }
const hourly = { limit: LOTS, window: /** @type {const} */ ('1h') }

/** Every algorithm; logs are below, where they are full. */
const counters = measured.filter(({ isLog }) => !isLog)

/** Their names. */
export const counterNames = counters.map(({ label }) => label)

/** @type {Contenders} */
export const contenders = {
  'rate-limiter-flexible': (redis, name) => flexible(redis, name),
  'rate-limit-redis': (redis, name) => express(redis, name),
  ...Object.fromEntries(
    counters.map(({ label, policy }) => [label, ours([policy({ limit: LOTS, window: WINDOW_MS })])]),
  ),
  'fixed window, nearing': ours([fixedWindow(hourly)], { nearing: [0.8, 1] }),
  'gcra *': ours([gcra(hourly)], { stepUs: 1000 }),
  'gcra, denied': ours([gcra({ limit: 1, window: '1h' })], { fill: 1 }),
  'sliding window, 60 buckets': ours([slidingWindow({ ...hourly, buckets: 60 })]),
  '60 buckets, one passes a call *': ours([slidingWindow({ ...hourly, buckets: 60 })], { stepUs: HOUR / 60 }),
  '60 buckets, 30 pass a call *': ours([slidingWindow({ ...hourly, buckets: 60 })], { stepUs: HOUR / 2 }),
  'sliding window, weighted, 60 buckets': ours([
    slidingWindow({ ...hourly, buckets: 60, count: 'weighted' }),
  ]),
  'sliding log, 100, full *': fullLog(100),
  'sliding log, 1,000, full *': fullLog(1000),
  'sliding log, 100,000, full *': fullLog(100_000),
  'sliding log, 100, denied': ours([slidingLog({ limit: 100, window: '1h' })], { fill: 100 }),
  'sorted set, 100, full': sortedSet(100),
  'sorted set, 1,000, full': sortedSet(1000),
  'sorted set, 100,000, full': sortedSet(100_000),
  'three policies': ours([
    gcra(hourly),
    slidingWindow({ ...hourly, name: 'window' }),
    fixedWindow({ limit: LOTS, window: '1d' }),
  ]),
  'three policies, all gcra': ours([
    gcra({ limit: LOTS, window: '1m' }),
    gcra(hourly),
    gcra({ limit: 50_000, window: '1d' }),
  ]),
  'three, rate-limiter-flexible': (redis, name) => {
    const union = new RateLimiterUnion(
      ...[1, 2, 3].map((i) => flexibleOnRedis(redis, `${name} ${i}`, HOURLY)),
    )
    return { call: (key) => union.consume(key) }
  },
  'three, rate-limit-redis': (redis, name) => {
    const each = [1, 2, 3].map((i) => express(redis, `${name} ${i}`))
    return { call: (key) => Promise.all(each.map((one) => one.call(key))) }
  },
}

/**
 * @param {readonly Policy[]} policies
 * @param {{ stepUs?: number, fill?: number, nearing?: readonly number[] }} options `stepUs`: time passes by this much from one call of a key to its
 * next, on an injected clock. `fill`: calls made before.
 * @returns {Contenders[string]}
 */
function ours(policies, { stepUs, fill = 0, ...options } = {}) {
  return (redis, name) => {
    let now = START
    const clock = stepUs === undefined ? {} : { clock: () => Math.floor(now) }
    const limiter = createLimiter({
      name,
      policies,
      store: redisStore(redis, { ...clock, denialCache: false }),
      deadline: '10s',
      ...options,
    })
    return {
      call(key) {
        now += (stepUs ?? 0) / KEYS
        return limiter.consume(key)
      },
      async fill(key) {
        for (let i = 0; i < fill; i++) await limiter.consume(key)
      },
      injected: stepUs !== undefined,
    }
  }
}

/**
 * @param {Redis} redis
 * @param {string} name
 * @returns {Contender}
 */
function flexible(redis, name) {
  const limiter = flexibleOnRedis(redis, name, HOURLY)
  return { call: (key) => limiter.consume(key) }
}

/**
 * @param {Redis} redis
 * @param {string} name
 * @returns {Contender}
 */
function express(redis, name) {
  const ready = readyRateLimitRedis(redis, `${name}:`, WINDOW_MS)
  return { call: async (key) => (await ready).increment(key) }
}
