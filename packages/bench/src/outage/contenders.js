// Who is measured: our adapters on Redis as their pages show them, and others as theirs do. All admit `LIMIT` requests a
// minute of each caller, who is named by a header as all requests come from one address.
import { ThrottlerStorageRedisService } from '@nest-lab/throttler-storage-redis'
import { APP_GUARD } from '@nestjs/core'
import { ThrottlerGuard, ThrottlerModule } from '@nestjs/throttler'
import { redisStore } from '@sluice/core/redis'
import * as sluiceExpress from '@sluice/express'
import * as sluiceKoa from '@sluice/koa'
import { RateLimitGuard, RateLimitModule } from '@sluice/nest'
import { rateLimit } from 'express-rate-limit'
import { Redis } from 'ioredis'
import { once } from 'node:events'
import { RateLimiterMemory, RLWrapperTimeouts } from 'rate-limiter-flexible'
import { serve as onExpress } from '../http/frameworks/express.js'
import { serve as onKoa } from '../http/frameworks/koa.js'
import { serve as onNest } from '../http/frameworks/nest.js'
import { flexibleOnRedis } from '../peers/flexible.js'
import { rateLimitRedis } from '../peers/rate-limit-redis.js'

/**
 * @typedef {import('node:http').Server} Server
 * @typedef {{ host: string, port: number }} Address
 * @typedef {object} Contender
 * @property {string} name
 * @property {string} options What was set beside the limit and whom it counts.
 * @property {(redis: Address) => Server | Promise<Server>} serve It does not listen yet.
 */

/** The header that names the caller. */
export const CALLER = 'x-caller'

/** Requests a minute. */
export const LIMIT = 10

/** Limits nothing. It runs beside each, to tell what the machine takes itself. */
export const BARE = 'bare Express'

/** Ours are those whose name begins so. */
export const OURS = '@sluice/'

/** @type {readonly Contender[]} */
export const contenders = [
  {
    name: BARE,
    options: 'nothing',
    serve: () => onExpress(),
  },
  {
    name: '@sluice/express',
    options: 'redisStore(address)',
    serve: (redis) => onExpress(sluiceExpress.rateLimit(ours(redis, (req) => req.get(CALLER)))),
  },
  {
    name: '@sluice/koa',
    options: 'redisStore(address)',
    serve: (redis) => onKoa(sluiceKoa.rateLimit(ours(redis, (ctx) => ctx.get(CALLER)))),
  },
  {
    name: '@sluice/nest',
    options: 'redisStore(address), the guard as APP_GUARD',
    serve(redis) {
      const { limit, window, store, key } = ours(redis, ({ req }) => req.headers[CALLER])
      return onNest(
        [RateLimitModule.forRoot({ store, key, limits: [{ limit, window }] })],
        [{ provide: APP_GUARD, useExisting: RateLimitGuard }],
      )
    },
  },
  {
    name: 'rate-limiter-flexible',
    options: 'ioredis with enableOfflineQueue: false, the middleware of its documents (429 on any rejection)',
    async serve(redis) {
      return onExpress(flexibleMiddleware(await flexible(redis)))
    },
  },
  {
    name: 'rate-limiter-flexible, insured',
    options: 'the same with insuranceLimiter: RateLimiterMemory, in RLWrapperTimeouts with timeoutMs: 50',
    async serve(redis) {
      const insuranceLimiter = new RateLimiterMemory({ points: LIMIT, duration: 60 })
      const limiter = await flexible(redis, { insuranceLimiter })
      return onExpress(
        flexibleMiddleware(new RLWrapperTimeouts({ limiter, insuranceLimiter, timeoutMs: 50 })),
      )
    },
  },
  {
    name: 'express-rate-limit',
    options: 'RedisStore of rate-limit-redis on an ioredis with its defaults',
    serve: (redis) => onExpress(expressRateLimit(redis)),
  },
  {
    name: 'express-rate-limit, passing',
    options: 'the same with passOnStoreError: true',
    serve: (redis) => onExpress(expressRateLimit(redis, { passOnStoreError: true })),
  },
  {
    name: '@nestjs/throttler',
    options:
      'ThrottlerStorageRedisService of @nest-lab on an ioredis with its defaults, the guard as APP_GUARD',
    serve(redis) {
      const throttler = ThrottlerModule.forRoot({
        throttlers: [{ limit: LIMIT, ttl: 60_000 }],
        storage: new ThrottlerStorageRedisService(new Redis(redis)),
        getTracker: (req) => req.headers[CALLER],
        // Else a hash, in which the script that measures would not find the caller.
        generateKey: (_context, tracker) => tracker,
      })
      return onNest([throttler], [{ provide: APP_GUARD, useClass: ThrottlerGuard }])
    },
  },
]

/**
 * @template Req
 * @param {Address} redis
 * @param {(req: Req) => string | undefined} caller
 */
function ours(redis, caller) {
  return {
    name: 'api',
    limit: LIMIT,
    window: /** @type {const} */ ('1m'),
    store: redisStore(redis),
    key: (/** @type {Req} */ req) => caller(req) ?? '',
  }
}

/**
 * @param {Address} redis
 * @param {object} options
 */
async function flexible(redis, options = {}) {
  const storeClient = new Redis({ ...redis, enableOfflineQueue: false })
  storeClient.on('error', () => {}) // its documents ask for a listener
  await once(storeClient, 'ready')
  return flexibleOnRedis(storeClient, 'middleware', { limit: LIMIT, windowMs: 60_000 }, options)
}

/**
 * @param {{ consume(key: string): Promise<unknown> }} limiter
 * @returns {import('express').RequestHandler}
 */
function flexibleMiddleware(limiter) {
  return async (req, res, next) => {
    try {
      await limiter.consume(req.get(CALLER) ?? '')
    } catch {
      res.status(429).send('Too Many Requests')
      return
    }
    next()
  }
}

/**
 * @param {Address} redis
 * @param {Partial<import('express-rate-limit').Options>} options
 */
function expressRateLimit(redis, options = {}) {
  return rateLimit({
    windowMs: 60_000,
    limit: LIMIT,
    standardHeaders: true,
    legacyHeaders: false,
    keyGenerator: (req) => req.get(CALLER) ?? '',
    store: rateLimitRedis(new Redis(redis)),
    ...options,
  })
}
