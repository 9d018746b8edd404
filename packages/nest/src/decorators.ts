import { type CustomDecorator, Inject, SetMetadata } from '@nestjs/common'
import type { RateLimitOptions } from './options.js'

/*
 * Decorators only set metadata. One that also applied the guard would charge twice if both class and method carry it.
 */

const LIMITS = 'sluice.limits'
const SKIPPED = 'sluice.skipped'

/**
 * Limits a handler, or all handlers of a class together, in addition to the limits of the class and the module. Several count
 * separately. The default name is `Class` or `Class.method`, with a number from the second on. Requires `RateLimitGuard`.
 * @example
 * ```ts
 * @RateLimit({ limit: 60, window: '1m' })
 * ```
 */
export function RateLimit(options: RateLimitOptions): ClassDecorator & MethodDecorator {
  return (target: object, method?: string | symbol, descriptor?: PropertyDescriptor): void => {
    const subject = (descriptor?.value ?? target) as object
    const { name } = (descriptor ? target.constructor : target) as { name: string }
    // A name may have 64 characters; this leaves some for a number.
    const path = (descriptor ? `${name}.${String(method)}` : name).slice(-60)
    const others = limitsOn(subject)
    const alike = others.filter((other) => other.name?.replace(/-\d+$/, '') === path).length
    const unnamed = options?.name === undefined && options?.limiter === undefined
    const limit = unnamed ? { ...options, name: alike === 0 ? path : `${path}-${alike + 1}` } : options
    Reflect.defineMetadata(LIMITS, [limit, ...others], subject)
  }
}

/** Skips the limits from outside a class or method: all of them, or those named. A `@RateLimit` beside it still counts. */
export function SkipRateLimit(...names: readonly string[]): CustomDecorator {
  return SetMetadata(SKIPPED, names)
}

/** Injects a limiter of `RateLimitModule.forFeature`. */
export function InjectLimiter(name: string): PropertyDecorator & ParameterDecorator {
  return Inject(limiterToken(name))
}

/** The injection token of a limiter of `RateLimitModule.forFeature`, for factories and for overrides in tests. */
export function limiterToken(name: string): string {
  return `sluice.limiter:${name}`
}

export function limitsOn(subject: object): readonly RateLimitOptions[] {
  return (Reflect.getMetadata(LIMITS, subject) as readonly RateLimitOptions[] | undefined) ?? []
}

/** Whether `subject` skips the outer limit of this name. */
export function isSkippedOn(subject: object, name: string): boolean {
  const names = Reflect.getMetadata(SKIPPED, subject) as readonly string[] | undefined
  return names !== undefined && (names.length === 0 || names.includes(name))
}
