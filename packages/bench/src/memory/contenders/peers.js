// Each as its documentation has it used, or as its own middleware uses its store. The modules of one are not loaded for others.
/** @typedef {import('../../contender.js').Limit} Limit */
/** @typedef {import('../../contender.js').Contender} Contender */

/** @type {Record<string, (limit: Limit) => Promise<Contender>>} */
export const peers = {
  'express-rate-limit': async ({ limit, windowMs }) => {
    const { MemoryStore } = await import('express-rate-limit')
    const store = new MemoryStore()
    store.init(/** @type {any} */ ({ windowMs }))
    return { call: (key) => store.increment(key), allowed: ({ totalHits }) => totalHits <= limit }
  },
  'rate-limiter-flexible': async ({ limit, windowMs }) => {
    const { RateLimiterMemory, RateLimiterRes } = await import('rate-limiter-flexible')
    const limiter = new RateLimiterMemory({ points: limit, duration: windowMs / 1000 })
    const isDenial = (/** @type {unknown} */ error) => error instanceof RateLimiterRes
    return { call: (key) => limiter.consume(key), allowed: () => true, isDenial }
  },
  'koa-ratelimit': async ({ limit, windowMs }) => {
    const { default: MemoryLimiter } = await import('koa-ratelimit/limiter/memory.js')
    const db = new Map()
    const call = (/** @type {string} */ id) =>
      new MemoryLimiter({ id, db, max: limit, duration: windowMs }).get()
    return { call, allowed: ({ remaining }) => remaining > 0 }
  },
  '@nestjs/throttler': async ({ limit, windowMs }) => {
    const { ThrottlerStorageService } = await import('@nestjs/throttler')
    const storage = new ThrottlerStorageService()
    const call = (/** @type {string} */ key) => storage.increment(key, windowMs, limit, windowMs, 'default')
    return { call, allowed: ({ isBlocked }) => !isBlocked }
  },
  '@fastify/rate-limit': async ({ limit, windowMs }) => {
    const { default: LocalStore } = await import('@fastify/rate-limit/store/LocalStore.js')
    const store = new LocalStore(false, false, 2_000_000) // the default of 5,000 keys would forget most of them
    const call = (/** @type {string} */ key) => {
      let hits = 0
      store.incr(key, (_error, result) => (hits = result.current), windowMs, limit)
      return hits
    }
    return { call, allowed: (hits) => hits <= limit, sync: true }
  },
  'hono-rate-limiter': async ({ limit, windowMs }) => {
    const { MemoryStore } = await import('hono-rate-limiter')
    const store = new MemoryStore()
    store.init(/** @type {any} */ ({ windowMs }))
    return { call: (key) => store.increment(key), allowed: ({ totalHits }) => totalHits <= limit, sync: true }
  },
  limiter: async ({ limit, windowMs }) => {
    const { RateLimiter } = await import('limiter')
    /** @type {Map<string, import('limiter').RateLimiter>} */
    const limiters = new Map()
    const options = { tokensPerInterval: limit, interval: windowMs, fireImmediately: true }
    const call = (/** @type {string} */ key) => {
      let limiter = limiters.get(key)
      if (!limiter) limiters.set(key, (limiter = new RateLimiter(options)))
      return limiter.removeTokens(1)
    }
    return { call, allowed: (left) => left >= 0 }
  },
  bottleneck: async ({ limit, windowMs }) => {
    const { default: Bottleneck } = await import('bottleneck')
    const limiter = new Bottleneck({
      reservoir: limit,
      reservoirRefreshAmount: limit,
      reservoirRefreshInterval: windowMs,
      highWater: 0,
      strategy: Bottleneck.strategy.OVERFLOW,
    })
    const isDenial = (/** @type {unknown} */ error) => error instanceof Bottleneck.BottleneckError
    return { call: () => limiter.schedule(pass), allowed: (passed) => passed, isDenial, hotKeyOnly: true }
  },
}

const pass = async () => true
