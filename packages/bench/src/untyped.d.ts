// Parts of other packages that come without types.

declare module '@fastify/rate-limit/store/LocalStore.js' {
  export default class LocalStore {
    constructor(continueExceeding: boolean, exponentialBackoff: boolean, cache?: number)
    incr(key: string, done: Done, windowMs: number, max: number): void
  }
  type Done = (error: unknown, result: { readonly current: number }) => void
}

declare module '@fastify/rate-limit/store/RedisStore.js' {
  export default class RedisStore {
    constructor(continueExceeding: boolean, exponentialBackoff: boolean, redis: unknown, prefix?: string)
    incr(key: string, done: Done, windowMs: number, max: number): void
  }
  type Done = (error: unknown, result: { readonly current: number }) => void
}

declare module 'koa-ratelimit/limiter/memory.js' {
  export default class MemoryLimiter {
    constructor(options: { id: string; db: Map<string, unknown>; max: number; duration: number })
    get(): Promise<{ remaining: number }>
  }
}

declare module 'koa-ratelimit/limiter/redis.js' {
  export default class RedisLimiter {
    constructor(options: { id: string; db: unknown; max: number; duration: number })
    get(): Promise<{ remaining: number }>
  }
}
