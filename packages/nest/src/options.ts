import type { ExecutionContext, Type } from '@nestjs/common'
import type { Decision, Limiter, LimiterOptions, Store } from '@sluice/core'
import { INHERITED, type KeyFunction, type PartLimitOptions, type RequestLimitOptions } from '@sluice/http'

/** `any`, as in Nest's own types, which do not know the framework either. */
// oxlint-disable-next-line typescript/no-explicit-any
type Native = any

/** One call of a handler: an HTTP request, an operation of a GraphQL request, or a WebSocket message. */
export interface Call {
  readonly kind: 'http' | 'graphql' | 'ws'
  /** The framework's request; for a subscription, the request that opened the connection; in a gateway, the client. */
  readonly req: Native
  /** The framework's response; undefined if there is none to set headers on. */
  readonly res: Native
  readonly context: ExecutionContext
  /** The decisions about this call so far, oldest first. */
  readonly decisions: Decision[]
  /** @internal What Fastify wraps in `res`, looked up once: Express takes a third of a microsecond to find that there is none. */
  readonly raw: Native
}

/** A provider that returns keys. */
export interface KeyProvider {
  key: KeyFunction<Call>
}

/** Options of a limit in the forms that Nest knows. */
interface OfNest {
  /**
   * A function, or the class of a provider (a singleton of any module).
   * @default byIp()
   */
  readonly key?: KeyFunction<Call> | Type<KeyProvider>
  /** A limiter to share, or the name of one from `RateLimitModule.forFeature`. */
  readonly limiter?: Limiter | string
}

/** Callbacks get a call in place of both request and response. */
export interface RateLimitOptions
  extends Omit<RequestLimitOptions<Call, Call>, keyof OfNest | 'limits'>, OfNest {
  /**
   * 1 to 16 limits, each with a name of its own, in one decision: a call is charged under all of them, or under none; or a
   * function, which is asked at each call for the list in force. It is known by no name that `@SkipRateLimit` could give.
   */
  readonly limits?: readonly PartOfRateLimit[] | (() => readonly PartOfRateLimit[])
  /**
   * Whether it counts by itself: before the other limits of a handler, and also the calls that those deny. Otherwise all limits
   * of a handler are one decision. Always so with `maxWait`, as calls do not wait for several turns.
   * @default false
   */
  readonly independent?: boolean
}

/** One limit of several that are decided together. */
export interface PartOfRateLimit extends Omit<PartLimitOptions<Call, Call>, keyof OfNest>, OfNest {}

/** Options in place of those of an outer limit; `name` is the limit's. */
export type LimitOverride = Omit<RateLimitOptions, 'name' | 'limiter' | 'store'> & { readonly name: string }

/** The defaults of limits and limiters, and the limits that apply to every handler. */
export interface RateLimitModuleOptions extends Pick<
  RateLimitOptions,
  Exclude<(typeof DEFAULTS)[number], 'store'>
> {
  /**
   * The store of all limits: one that stays open, or a function that makes one for each application, which is closed with it.
   * @default () => memoryStore()
   */
  readonly store?: Store | (() => Store)
  readonly limits?: readonly RateLimitOptions[]
  /**
   * The most bytes that may wait for a client of a gateway to read them, 0 to 2^30. With more, a denied message closes the
   * connection with the status 1008: a client that sends and never reads would fill the memory with its denials.
   * @default 1_048_576
   */
  readonly maxBuffered?: number
}

/** The options of limits that the module may give a default. */
export const DEFAULTS = [...INHERITED.byLimiters, ...INHERITED.byRequests] as const

/** The options of `createLimiter`; `name` is also that of `@InjectLimiter`. */
export type NamedLimiterOptions = LimiterOptions & { readonly name: string }
