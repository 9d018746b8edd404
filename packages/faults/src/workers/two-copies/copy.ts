import type * as Core from '@sluice/core'
import type { redisStore } from '@sluice/core/redis'

/** One copy of all packages. Those that need core's types of their own are loosely typed here. */
export interface Copy {
  readonly name: string
  readonly core: typeof Core
  readonly redis: { readonly redisStore: typeof redisStore }
  readonly express: Middleware
  readonly koa: Middleware
  readonly fastify: Middleware
  readonly hono: Middleware
  readonly nest: { readonly RateLimitModule: Module; readonly RateLimitGuard: never }
  readonly outbound: Outbound
}

/** Two copies: objects of the first are used by the second. */
export type Pair = readonly [made: Copy, used: Copy]

export interface RedisAddress {
  readonly host: string
  readonly port: number
}

export interface Middleware {
  readonly rateLimit: (options: object) => never
}

export interface Module {
  readonly forRoot: (options: object) => never
}

export interface Outbound {
  readonly limitFetch: (fetch: typeof globalThis.fetch, options: object) => typeof globalThis.fetch
  readonly decisionOf: (response: object, limiter?: string) => Core.Decision | undefined
  readonly RateLimitExceededError: new (...args: never) => Error
}
