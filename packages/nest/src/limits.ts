import { Inject, Injectable, type OnApplicationShutdown, type OnModuleInit, type Type } from '@nestjs/common'
import { DiscoveryService, MetadataScanner, ModuleRef } from '@nestjs/core'
import { type Limiter, PolicyError } from '@sluice/core'
import { readOne } from '@sluice/core/internal'
import { maxBuffered } from '@sluice/http'
import { isSkippedOn, limitsOn, type Marked, overridesOn } from './decorators.js'
import { type Limit, LimitMaker } from './limit-maker.js'
import type * as Options from './options.js'

/** Where Nest keeps the options of the module. */
export const MODULE_OPTIONS = 'sluice.options'

/**
 * The limits of every handler, and the limiters by name. They are made when the application starts, so that invalid options
 * fail there, and closed with the shared store when it shuts down.
 */
@Injectable()
export class Limits implements OnModuleInit, OnApplicationShutdown {
  /** The most bytes that may wait for a client of a gateway. */
  readonly maxBuffered: number
  readonly #maker: LimitMaker
  /** By handler, then by class; those of fields inside GraphQL operations apart. */
  readonly #ofHandlers = new WeakMap<object, Map<object, readonly Limit[]>>()
  readonly #ofFields = new WeakMap<object, Map<object, readonly Limit[]>>()

  constructor(
    @Inject(MODULE_OPTIONS) private readonly options: Options.RateLimitModuleOptions,
    @Inject(ModuleRef) modules: ModuleRef,
    @Inject(DiscoveryService) private readonly discovery: DiscoveryService,
  ) {
    this.#maker = new LimitMaker(options, modules)
    this.maxBuffered = readOne(maxBuffered, options.maxBuffered, 'maxBuffered', { what: 'RateLimitModule' })
  }

  onModuleInit(): void {
    const scanner = new MetadataScanner()
    this.#limitsOfModule()
    for (const { metatype } of [...this.discovery.getControllers(), ...this.discovery.getProviders()]) {
      if (!metatype) continue
      const prototype = metatype.prototype as Record<string, object>
      const handlers = scanner.getAllMethodNames(prototype).map((name) => prototype[name]!)
      if (![metatype, ...handlers].some(isLimited)) continue
      this.#limitsOn(metatype, metatype as Type)
      for (const handler of handlers) this.at(metatype, handler)
    }
  }

  async onApplicationShutdown(): Promise<void> {
    await this.#maker.close()
  }

  define(options: Options.NamedLimiterOptions): Limiter {
    return this.#maker.define(options)
  }

  /** The limits of a call, outermost first, each limiter once: if two levels share one, the inner level's options apply. */
  of({ kind, context }: Options.Call): readonly Limit[] {
    // A field inside an operation is not another operation: only the limits of its own method apply.
    const nested = kind === 'graphql' && context.getArgByIndex(3)?.path.prev !== undefined
    return this.at(context.getClass(), context.getHandler(), nested)
  }

  /** The limits of a handler of a class, which may have inherited it. */
  at(owner: object, handler: object, nested = false): readonly Limit[] {
    const found = nested ? this.#ofFields : this.#ofHandlers
    let byOwner = found.get(handler)
    if (!byOwner) found.set(handler, (byOwner = new Map()))
    let limits = byOwner.get(owner)
    if (!limits) {
      limits = nested ? this.#limitsOn(handler, owner as Type) : this.#on(owner as Type, handler)
      byOwner.set(owner, limits)
    }
    return limits
  }

  #on(owner: Type, handler: object): readonly Limit[] {
    let limits = this.#limitsOfModule()
    for (const level of [owner, handler]) {
      limits = limits.filter(({ knownAs }) => !isSkippedOn(level, knownAs))
      for (const override of overridesOn(level)) limits = this.#overridden(limits, override, owner)
      for (const limit of this.#limitsOn(level, owner)) limits = withLimit(limits, limit)
    }
    return limits
  }

  #limitsOfModule(): readonly Limit[] {
    return (this.options.limits ?? []).map((options) => this.#maker.limit(options, this, 'default'))
  }

  /** The limits on one level, where those without a name are named after the class of the call. */
  #limitsOn(level: object, owner: Type): readonly Limit[] {
    const all = limitsOn(level)
    return all.map(({ options, subject, method }, i) => {
      // Those of the class itself are numbered before inherited ones, and on each from the bottom up.
      const earlier = all.filter(
        (other, j) => isUnnamed(other.options) && (other.subject === subject ? j > i : j < i),
      ).length
      const path = pathOf(owner, method)
      return this.#maker.limit(options, owner, earlier === 0 ? path : `${path}-${earlier + 1}`)
    })
  }

  #overridden(limits: readonly Limit[], { options, method }: Marked<Options.LimitOverride>, owner: Type) {
    const path = pathOf(owner, method)
    const outer = limits.find(({ knownAs }) => knownAs === options.name)
    if (outer) {
      const limit = this.#maker.override(options, outer, owner, `${options.name}:${path}`.slice(0, 64))
      return limits.map((other) => (other === outer ? limit : other))
    }
    const message = `${path} overrides the limit '${String(options.name)}', but no limit of this name is outside of it`
    throw new PolicyError('INVALID_OPTION', message)
  }
}

function isLimited(subject: object): boolean {
  return limitsOn(subject).length > 0 || overridesOn(subject).length > 0
}

function isUnnamed({ name, limiter }: Options.RateLimitOptions): boolean {
  return name === undefined && limiter === undefined
}

/** A name may have 64 characters; this leaves some for a number. */
function pathOf(owner: Type, method: string | undefined): string {
  return (method === undefined ? owner.name : `${owner.name}.${method}`).slice(-60)
}

/** The innermost limit that charges a limiter takes the place of the outer one. */
function withLimit(limits: readonly Limit[], limit: Limit): readonly Limit[] {
  const charged = limits.some(({ limiter }) => limiter === limit.limiter)
  if (!charged) return [...limits, limit]
  return limits.map((other) => (other.limiter === limit.limiter ? limit : other))
}
