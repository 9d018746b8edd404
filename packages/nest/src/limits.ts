import { Inject, Injectable, type OnModuleInit, type Type } from '@nestjs/common'
import { DiscoveryService, MetadataScanner } from '@nestjs/core'
import { PolicyError } from '@sluice/core'
import { readOption } from '@sluice/core/internal'
import { combineGuards, getOrMake, maxBuffered } from '@sluice/http'
import { isSkippedOn, limitsOn, type Marked, overridesOn } from './decorators.js'
import { type Limit, LimitMaker, MODULE_OPTIONS } from './limit-maker.js'
import { operationsOfSeveral } from './operations.js'
import type * as Options from './options.js'
import { nest } from './platform.js'

/** The limits of every handler. They are made when the application starts, so that invalid options fail there. */
@Injectable()
export class Limits implements OnModuleInit {
  /** The most bytes that may wait for a client of a gateway. */
  readonly maxBuffered: number
  readonly #combined: Combined[] = []
  /** By handler, then by class. */
  readonly #ofHandlers = new WeakMap<object, Map<object, HandlerLimits>>()

  /**
   * Gets the module's options, the maker of limits and Nest's list of providers from Nest's container. The option
   * `maxBuffered` is the most bytes that a WebSocket client may leave unread before a denied message closes its connection.
   * It is checked here, so that a wrong value is an error when the application starts and not at a denial.
   */
  constructor(
    @Inject(MODULE_OPTIONS) private readonly options: Options.RateLimitModuleOptions,
    @Inject(LimitMaker) private readonly maker: LimitMaker,
    @Inject(DiscoveryService) private readonly discovery: DiscoveryService,
  ) {
    this.maxBuffered = maker.starting(() =>
      readOption(maxBuffered, options.maxBuffered, 'maxBuffered', { what: 'RateLimitModule' }),
    )
  }

  /**
   * Makes the limits of all handlers when the application starts, so that options that cannot work fail then and not with
   * the first call. Nest's controllers and providers are searched for classes and methods with decorators of limits.
   */
  onModuleInit(): void {
    this.maker.starting(() => this.#makeAll())
  }

  #makeAll(): void {
    const scanner = new MetadataScanner()
    // The maker keeps the limits that it makes: they are looked up here to be made now.
    this.#limitsOfModule()
    for (const { metatype } of [...this.discovery.getControllers(), ...this.discovery.getProviders()]) {
      if (!metatype) continue
      const prototype = metatype.prototype as Record<string, object>
      const handlers = scanner.getAllMethodNames(prototype).map((name) => prototype[name]!)
      if (![metatype, ...handlers].some(isLimited)) continue
      this.#limitsOn(metatype, metatype as Type)
      for (const handler of handlers) this.at(metatype as Type, handler)
    }
  }

  /**
   * The guards that a call has to pass, in their order. A field inside a GraphQL operation, whose path has a parent
   * (`prev`), is no call of its own: only the limits of its own method apply to it.
   */
  of({ kind, context }: Options.Call): readonly CountCall[] {
    const isField = kind === 'graphql' && context.getArgByIndex(3)?.path.prev !== undefined
    return this.at(context.getClass(), context.getHandler())[isField ? 'asField' : 'asCall']
  }

  /**
   * The limits of a handler, a method that the class `owner` has or inherits, as guards; made at the first call. `asCall` is for
   * a request, under the limits of module, class and method. `asField` is for a field of a GraphQL operation, under the
   * method's alone, as the operation was counted under the others.
   */
  at(owner: Type, handler: object): HandlerLimits {
    const byOwner = getOrMake(this.#ofHandlers, handler, () => new Map<object, HandlerLimits>())
    return getOrMake(byOwner, owner, () => {
      return {
        asCall: this.#guardsOf(this.#limitsOf(owner, handler)),
        asField: this.#guardsOf(this.#limitsOn(handler, owner).reduce(withLimit, [])),
      }
    })
  }

  /**
   * The limits of a handler as a call of its own, outermost first: the module's, the class's and its own. Class and
   * method each leave out the outer limits that they skip, and replace those that they override; an override on the
   * method may bring back a limit that the class skips. Overrides of one limit, of the class and inherited, are applied as one.
   */
  #limitsOf(owner: Type, handler: object): readonly Limit[] {
    let limits = this.#limitsOfModule()
    /** Limits that the level outside of this one skips; an override may bring them back. */
    let skippedOutside: readonly Limit[] = []
    for (const level of [owner, handler]) {
      const skipped = limits.filter(({ knownAs }) => isSkippedOn(level, knownAs))
      limits = limits.filter((limit) => !skipped.includes(limit))
      const byName = new Map<string, Marked<Options.LimitOverride>[]>()
      for (const override of overridesOn(level)) {
        getOrMake(byName, override.options.name, () => []).push(override)
      }
      for (const overrides of byName.values()) {
        limits = this.#overridden(limits, skippedOutside, overrides, owner, level)
      }
      limits = this.#limitsOn(level, owner).reduce(withLimit, limits)
      skippedOutside = skipped
    }
    return limits
  }

  /**
   * The guards that a call passes in turn: one for each limit, or list of limits, that is independent, outermost first,
   * and then one guard that decides all other limits together. A denial by that one leaves the charges of the independent
   * limits as they are.
   */
  #guardsOf(limits: readonly Limit[]): readonly CountCall[] {
    const groupOf = (object?: object): readonly Limit[] => limits.filter(({ apart }) => apart === object)
    const independent = [...new Set(limits.flatMap(({ apart }) => apart ?? []))].map(groupOf)
    const groups = [...independent, groupOf()].filter(({ length }) => length > 0)
    return groups.map((group) => this.#guardOf(group))
  }

  /**
   * The guard that decides these limits together; of a single limit its own. Handlers with the same limits get the same
   * guard, and so share the denials of a GraphQL request, which runs many handlers.
   */
  #guardOf(limits: readonly Limit[]): CountCall {
    if (limits.length === 1 && limits[0]!.guard) return limits[0]!.guard
    const isSame = ([others]: Combined): boolean =>
      others.length === limits.length && others.every((other, i) => other === limits[i])
    const known = this.#combined.find(isSame)
    if (known) return known[1]
    const guard = combineGuards(limits, nest, operationsOfSeveral())
    this.#combined.push([limits, guard])
    return guard
  }

  /** The limits that the module's options put on every handler. */
  #limitsOfModule(): readonly Limit[] {
    return (this.options.limits ?? []).flatMap((options) => this.maker.limits(options, this, this, 'default'))
  }

  /**
   * The limits that `@RateLimit` put on a class or a method (`level`), for calls of the class `owner`, which may have
   * inherited them. A limit without a name is named `Class` or `Class.method`, with a number from the second on;
   * `earlier` counts the limits without a name that are numbered before it. Decorators run from the bottom up, so the last
   * one in the list of its class is number 1.
   */
  #limitsOn(level: object, owner: Type): readonly Limit[] {
    const all = limitsOn(level)
    return all.flatMap(({ options, subject, method }, i) => {
      // Limits of the class itself are numbered before inherited ones, and on each from the bottom up.
      const earlier = all.slice(i + 1).filter((other) => isUnnamed(other.options)).length
      const path = pathOf(owner, method)
      return this.maker.limits(options, owner, subject, earlier === 0 ? path : `${path}-${earlier + 1}`)
    })
  }

  /**
   * Returns the limits of a handler with one of them changed by `@OverrideRateLimit` on a class or a method (`level`): the
   * one that these overrides name is replaced by its changed form. If the level outside skips that limit (`skipped`), it
   * is put back first. `owner` is the class of the handler, which the new limit's name contains.
   * @throws {PolicyError} INVALID_OPTION if there is no limit of that name.
   */
  #overridden(
    limits: readonly Limit[],
    skipped: readonly Limit[],
    overrides: readonly Marked<Options.LimitOverride>[],
    owner: Type,
    level: object,
  ) {
    const [{ options, method }] = overrides as [Marked<Options.LimitOverride>]
    const path = pathOf(owner, method)
    const outer = [...limits, ...skipped].find(({ knownAs }) => knownAs === options.name)
    if (outer) {
      const changes = overrides.map((override) => override.options)
      const limit = this.maker.override(changes, outer, owner, level, `${options.name}:${path}`)
      const others = limits.includes(outer) ? limits : [outer, ...limits]
      return others.map((other) => (other === outer ? limit : other))
    }
    const message = `${path} overrides the limit '${String(options.name)}', but no limit of this name is outside of it`
    throw new PolicyError('INVALID_OPTION', message)
  }
}

/** Counts a call under one limit or several. Returns undefined if it may pass; otherwise it has been answered. */
export type CountCall = ReturnType<typeof combineGuards<Options.Call, Options.Call>>

type Combined = readonly [limits: readonly Limit[], guard: CountCall]

/** The limits of one handler. */
interface HandlerLimits {
  readonly asCall: readonly CountCall[]
  /** Limits of its method alone, for a field inside a GraphQL operation. */
  readonly asField: readonly CountCall[]
}

/** Whether a class or method has a limit, or overrides one. */
function isLimited(subject: object): boolean {
  return limitsOn(subject).length > 0 || overridesOn(subject).length > 0
}

/** Whether a limit has to be named after its class and method: it has no name, and no limiter with one. */
function isUnnamed({ name, limiter }: Options.RateLimitOptions): boolean {
  return name === undefined && limiter === undefined
}

/**
 * The name of a class, or of its method, for a limit: its last 60 characters. A limiter's name may have 64, and a number
 * may follow.
 */
function pathOf(owner: Type, method: string | undefined): string {
  return (method === undefined ? owner.name : `${owner.name}.${method}`).slice(-60)
}

/**
 * Adds a limit to those around it, and returns all. It takes the place of the first that counts in the same limiter and comes of
 * another decorator, and further such limits are removed, so that a call is charged once. A limit that takes a permit, or whose
 * list a function gives, replaces none. A limit that is there already is not added again.
 */
function withLimit(limits: readonly Limit[], limit: Limit): readonly Limit[] {
  const isOfOther = ({ options }: Limit): boolean => options !== limit.options
  const isShared = (other: Limit): boolean =>
    hasLimiter(other) && hasLimiter(limit) && other.limiter === limit.limiter
  const isReplaced = (other: Limit): boolean => other === limit || (isOfOther(other) && isShared(other))
  const place = limits.findIndex(isReplaced)
  if (place === -1) return [...limits, limit]
  return limits.flatMap((other, i) => (i === place ? limit : isReplaced(other) ? [] : other))
}

/** Whether a limit counts in its `limiter`, and in that one alone. */
function hasLimiter({ given, inForce }: Limit): boolean {
  return !inForce && !('semaphore' in given && given.semaphore)
}
