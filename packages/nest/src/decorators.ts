import { type CustomDecorator, Inject, SetMetadata } from '@nestjs/common'
import type { LimitOverride, RateLimitOptions } from './options.js'

/*
 * Decorators only set metadata. One that also applied the guard would charge twice if both class and method carry it.
 */

const LIMITS = 'sluice.limits'
const OVERRIDES = 'sluice.overrides'
const SKIPPED = 'sluice.skipped'

/** Options as they stand on a class, or on its method of this name. */
export interface Marked<Options> {
  readonly options: Options
  /** The class or the handler that was decorated. */
  readonly subject: object
  readonly method: string | undefined
}

/**
 * Limits a handler, or all handlers of a class together, in addition to the limits of the class and the module. All of them
 * are one decision: a call is charged under each, or under none; one that is `independent` counts by itself. The default name is
 * `Class` or `Class.method`, with a number from the second on; subclasses that inherit a limit without a name of its own each
 * count for themselves. Requires `RateLimitGuard`.
 * @example
 * ```ts
 * @RateLimit({ limit: 60, window: '1m' })
 * ```
 */
export function RateLimit(options: RateLimitOptions): ClassDecorator & MethodDecorator {
  return mark(LIMITS, options)
}

/**
 * Replaces the outer limit of this name for a handler, or for all handlers of a class together: with its options, except for
 * those given. With another `limit`, `window`, `policies` or setting of the limiter, such as `enforce`, it counts by itself, else
 * in the outer limiter. On a method it counts also where the class skips the limit.
 * @example
 * ```ts
 * @OverrideRateLimit({ name: 'default', limit: 5 })
 * ```
 */
export function OverrideRateLimit(override: LimitOverride): ClassDecorator & MethodDecorator {
  return mark(OVERRIDES, override)
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

/** The limits on a handler, or on a class after those it inherits; in each class from the top down. */
export function limitsOn(subject: object): readonly Marked<RateLimitOptions>[] {
  return markedOn(LIMITS, subject)
}

/** The `@OverrideRateLimit` on a handler, or on a class after those it inherits; in each class from the top down. */
export function overridesOn(subject: object): readonly Marked<LimitOverride>[] {
  return markedOn(OVERRIDES, subject)
}

/**
 * Whether a class or method (`subject`) skips the outer limit of this name by `@SkipRateLimit`: it names this limit, or
 * names none, which skips all.
 */
export function isSkippedOn(subject: object, name: string): boolean {
  const names = Reflect.getMetadata(SKIPPED, subject) as readonly string[] | undefined
  return names !== undefined && (names.length === 0 || names.includes(name))
}

/**
 * Makes a decorator that stores `options` as metadata of its class or method under `kind`, and nothing else. In the list there
 * they come after inherited ones and before those that the class has already. `method` is undefined on a class.
 */
function mark(kind: string, options: object | null | undefined): ClassDecorator & MethodDecorator {
  return (target: object, method?: string | symbol, descriptor?: PropertyDescriptor): void => {
    const subject = (descriptor?.value ?? target) as object
    const marked = { options: options ?? {}, subject, method: descriptor && String(method) }
    const others = markedOn(kind, subject)
    const inherited = others.filter((other) => other.subject !== subject)
    Reflect.defineMetadata(kind, [...inherited, marked, ...others.slice(inherited.length)], subject)
  }
}

/** The options that decorators of this kind have stored on a class or method, inherited ones included; [] without any. */
function markedOn<Options>(kind: string, subject: object): readonly Marked<Options>[] {
  return (Reflect.getMetadata(kind, subject) as readonly Marked<Options>[] | undefined) ?? []
}
