import { type CustomDecorator, Inject, SetMetadata } from '@nestjs/common'
import type { RateLimitOptions } from './options.js'

/*
 * They set metadata and nothing else: one that brought the guard too would charge twice where class and method carry
 * it.
 */

const LIMITS = 'sluice.limits'
const SKIPPED = 'sluice.skipped'

/**
 * Limits a handler, or each handler of a class, beside the limits around it; several all count. Default name `Class` or
 * `Class.method`, of further ones with a number. Takes effect where `RateLimitGuard` is in force.
 */
export function RateLimit(options: RateLimitOptions): ClassDecorator & MethodDecorator {
  return (target: object, method?: string | symbol, descriptor?: PropertyDescriptor): void => {
    const subject = (descriptor?.value ?? target) as object
    const { name } = (descriptor ? target.constructor : target) as { name: string }
    // Of the 64 characters that a name may have, this leaves some for a number.
    const path = (descriptor ? `${name}.${String(method)}` : name).slice(-60)
    const others = limitsOn(subject)
    const alike = others.filter((other) => other.name?.replace(/-\d+$/, '') === path).length
    const unnamed = options?.name === undefined && options?.limiter === undefined
    const limit = unnamed ? { ...options, name: alike === 0 ? path : `${path}-${alike + 1}` } : options
    Reflect.defineMetadata(LIMITS, [limit, ...others], subject)
  }
}

/** Leaves out the limits around a class or method: all, or those named. Those of `@RateLimit` beside it still count. */
export function SkipRateLimit(...names: readonly string[]): CustomDecorator {
  return SetMetadata(SKIPPED, names)
}

/** Injects a limiter of `RateLimitModule.forFeature`. */
export function InjectLimiter(name: string): PropertyDecorator & ParameterDecorator {
  return Inject(limiterToken(name))
}

/** The token of a limiter of `RateLimitModule.forFeature`, for factories and to replace it in tests. */
export function limiterToken(name: string): string {
  return `sluice.limiter:${name}`
}

export function limitsOn(subject: object): readonly RateLimitOptions[] {
  return (Reflect.getMetadata(LIMITS, subject) as readonly RateLimitOptions[] | undefined) ?? []
}

/** Whether `subject` leaves out what is around it under this name. */
export function isSkippedOn(subject: object, name: string): boolean {
  const names = Reflect.getMetadata(SKIPPED, subject) as readonly string[] | undefined
  return names !== undefined && (names.length === 0 || names.includes(name))
}
