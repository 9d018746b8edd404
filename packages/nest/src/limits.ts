import { Inject, Injectable, type OnApplicationShutdown, type OnModuleInit, type Type } from '@nestjs/common'
import { DiscoveryService, MetadataScanner, ModuleRef } from '@nestjs/core'
import { createLimiter, type Limiter, memoryStore, PolicyError } from '@sluice/core'
import { createGuard, type Guard } from '@sluice/core/http'
import { isSkippedOn, limiterToken, limitsOn } from './decorators.js'
import type * as Options from './options.js'
import { nest } from './platform.js'

/** Where Nest keeps the options of the module. */
export const MODULE_OPTIONS = 'sluice.options'

type KeyOfCall = Options.KeyProvider['key']

/**
 * A limit as it applies to handlers. `limiter` identifies what it charges, the shared limiter or a `{ name }` of its own; of
 * the limits with the same one, only the innermost counts a call.
 */
export type Limit = Guard<Options.Call, Options.Call> & { readonly limiter: { readonly name: string } }

/**
 * The limits of every handler, and the limiters by name. They are made when the application starts, so that invalid options
 * fail there, and closed with the shared store when it shuts down.
 */
@Injectable()
export class Limits implements OnModuleInit, OnApplicationShutdown {
  readonly #store
  readonly #names = new Set<string>()
  readonly #limiters: Limiter[] = []
  readonly #limits = new Map<Options.RateLimitOptions, Limit>()
  /** By handler, then by its class or, for a GraphQL field, by the handler itself. */
  readonly #found = new WeakMap<object, Map<object, readonly Limit[]>>()

  constructor(
    @Inject(MODULE_OPTIONS) private readonly options: Options.RateLimitModuleOptions,
    @Inject(ModuleRef) private readonly modules: ModuleRef,
    @Inject(DiscoveryService) private readonly discovery: DiscoveryService,
  ) {
    this.#store = options.store ?? memoryStore()
  }

  onModuleInit(): void {
    const scanner = new MetadataScanner()
    this.#limitsOn(this)
    for (const { metatype } of [...this.discovery.getControllers(), ...this.discovery.getProviders()]) {
      if (metatype) this.#limitsOn(metatype)
      const prototype = metatype?.prototype as Record<string, object>
      for (const name of scanner.getAllMethodNames(prototype)) this.#limitsOn(prototype[name]!)
    }
  }

  async onApplicationShutdown(): Promise<void> {
    await Promise.all(this.#limiters.map((limiter) => limiter.close()))
    await this.#store.close()
  }

  define(options: Options.NamedLimiterOptions): Limiter {
    this.#claim(options.name)
    const { limits: _l, key: _k, skip: _s, headers: _h, resetAs: _r, onDenied: _o, ...rest } = this.options
    const limiter = createLimiter({ ...rest, store: this.#store, ...options })
    this.#limiters.push(limiter)
    return limiter
  }

  /** The limits of a call, outermost first, each limiter once: if two levels share one, the inner level's options apply. */
  of({ kind, context }: Options.Call): readonly Limit[] {
    const handler = context.getHandler()
    // A field inside an operation is not another operation: only the limits of its own method apply.
    const nested = kind === 'graphql' && context.getArgByIndex(3)?.path.prev !== undefined
    return this.at(nested ? handler : context.getClass(), handler)
  }

  /** The limits of a handler in a class. A GraphQL field is its own place, without class and module. */
  at(place: object, handler: object): readonly Limit[] {
    let byPlace = this.#found.get(handler)
    if (!byPlace) this.#found.set(handler, (byPlace = new Map()))
    let limits = byPlace.get(place)
    if (!limits)
      byPlace.set(place, (limits = this.#on(place === handler ? [handler] : [this, place, handler])))
    return limits
  }

  #on(levels: readonly object[]): readonly Limit[] {
    const limits = new Map<Limit['limiter'], Limit>()
    for (const level of levels) {
      for (const limiter of limits.keys()) if (isSkippedOn(level, limiter.name)) limits.delete(limiter)
      for (const limit of this.#limitsOn(level)) limits.set(limit.limiter, limit)
    }
    return [...limits.values()]
  }

  #limitsOn(level: object): readonly Limit[] {
    const all = level === this ? (this.options.limits ?? []) : limitsOn(level)
    return all.map((options) => this.#limits.get(options) ?? this.#make(options))
  }

  #make(given: Options.RateLimitOptions): Limit {
    const { limits: _l, key: keyOfModule, ...defaults } = this.options
    const { store = this.#store, onStoreError: _o, deadline: _d, enforce: _e, ...ofCalls } = defaults
    const { limiter: shared, key = keyOfModule, ...options } = given
    const { name = 'default' } = given
    const limiter =
      typeof shared === 'string' ? this.modules.get<Limiter>(limiterToken(shared), { strict: false }) : shared
    const charged = limiter ? { ...ofCalls, limiter } : { ...defaults, store, name }
    const guard = createGuard({ ...charged, ...options, ...(key && { key: this.#keyOf(key) }) }, nest)
    const limit = Object.assign(guard, { limiter: limiter ?? this.#claim(name) })
    this.#limits.set(given, limit)
    return limit
  }

  /** In one store, two limiters of the same name would share their usage. */
  #claim(name: string): Limit['limiter'] {
    const taken = `two limiters are named '${name}': rename one, or define it with forFeature and share it`
    if (this.#names.has(name)) throw new PolicyError('INVALID_OPTION', taken)
    this.#names.add(name)
    return { name }
  }

  #keyOf(key: KeyOfCall | Type<Options.KeyProvider>): KeyOfCall {
    if (!(key.prototype as Options.KeyProvider | undefined)?.key) return key as KeyOfCall
    const provider = this.modules.get(key, { strict: false })
    return (call, source) => provider.key(call, source)
  }
}
