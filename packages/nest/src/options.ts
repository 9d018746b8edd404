import type { ExecutionContext, Type } from '@nestjs/common'
import type { Decision, Limiter, LimiterOptions } from '@sluice/core'
import type { GuardOptions, KeyFunction as KeyOf } from '@sluice/core/http'

/** As Nest types them, which does not know the framework either. */
// oxlint-disable-next-line typescript/no-explicit-any
type Native = any

/** One run of a handler: an HTTP request, an operation of a GraphQL request, or a message over a WebSocket. */
export interface Call {
  readonly kind: 'http' | 'graphql' | 'ws'
  /** The framework's request; of a subscription the request that opened its connection; in a gateway the client. */
  readonly req: Native
  /** The framework's response; undefined where there is none to set headers on. */
  readonly res: Native
  readonly context: ExecutionContext
  /** The decisions about it so far, oldest first; none any more when a limit has refused. */
  readonly decisions: Decision[]
}

export type KeyFunction = KeyOf<Call>

/** A provider that gives keys. */
export interface KeyProvider {
  key: KeyFunction
}

/** Callbacks get a call in the place of both request and response. */
export interface RateLimitOptions extends Omit<GuardOptions<Call, Call>, 'key' | 'limiter'> {
  /** A function, or the class of a provider (a singleton of any module). Default `byIp()`. */
  readonly key?: KeyFunction | Type<KeyProvider>
  /** A limiter to share, or the name of one of `RateLimitModule.forFeature`. */
  readonly limiter?: Limiter | string
}

/** What limits and limiters go by unless they say otherwise, and the limits that hold for every handler. */
export interface RateLimitModuleOptions extends Pick<RateLimitOptions, Default> {
  readonly limits?: readonly RateLimitOptions[]
}

type Default =
  'store' | 'onStoreError' | 'deadline' | 'enforce' | 'key' | 'skip' | 'headers' | 'resetAs' | 'onDenied'

/** As `createLimiter` takes them; the name is also that of `@InjectLimiter`. */
export type NamedLimiterOptions = LimiterOptions & { readonly name: string }
