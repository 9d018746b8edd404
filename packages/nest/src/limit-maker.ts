import { Inject, Injectable, type OnApplicationShutdown, type Type } from '@nestjs/common'
import { ModuleRef } from '@nestjs/core'
import { createLimiter, type Limiter, memoryStore, PolicyError, type Store } from '@sluice/core'
import {
  checkNames,
  flag,
  LIMITER,
  type LimiterSettings,
  readOption,
  SETTINGS,
  unchecked,
} from '@sluice/core/internal'
import {
  chain,
  type CombinableGuard,
  createGuard,
  getOrMake,
  INHERITED,
  pick,
  REQUEST_LIMIT,
  type RequestLimitOptions,
  USAGE,
} from '@sluice/http'
import { limiterToken } from './decorators.js'
import { operationsOfSeveral, OperationSteps } from './operations.js'
import * as Options from './options.js'
import { nest } from './platform.js'

/** A limit as it applies to handlers. Of the limits with the same limiter, only the innermost counts a call. */
export interface Limit extends CombinableGuard<Options.Call, Options.Call> {
  /** The name that is skipped or overridden: the limiter's, or that of the limit which this one overrides. */
  readonly knownAs: string
  /** The limiter that counts calls under it alone; undefined for one of `limits`. */
  readonly guard: ReturnType<typeof createGuard<Options.Call, Options.Call>> | undefined
  readonly given: Options.RateLimitOptions
  /** Of an independent limit: the same object in all limits of its decision, which is made apart from that on the others. */
  readonly apart: object | undefined
}

type KeyOfCall = Options.KeyProvider['key']

/** Where Nest keeps the options of the module. */
export const MODULE_OPTIONS = 'sluice.options'

/**
 * Makes limits from options, each once. When the application shuts down, or does not start, it closes their limiters, and the
 * store if that was made here.
 */
@Injectable()
export class LimitMaker implements OnApplicationShutdown {
  readonly #store: Store
  /** Whether the store was made here, and has to be closed here. */
  readonly #ownsStore: boolean
  readonly #names = new Set<string>()
  /** Functions that list the limiters that it made and has to close; lists of a function `limits` grow. */
  readonly #made: (() => readonly Limiter[])[] = []
  /** The limiters that parts of `limits` brought. */
  readonly #broughtLimiters = new WeakSet<Limiter>()
  /** The lists that functions `limits` have returned, with what `#partsOf` made of each. */
  readonly #partsOfLists = new WeakMap<object, unknown>()
  /** By options, then the class that counts for itself, then what was decorated; shared limits by the options all along. */
  readonly #limits = new Map<object, Map<object, Map<object, readonly Limit[]>>>()

  /**
   * Gets the module's options and the registry of Nest's providers. All limiters of the module share its store: one that the
   * options have, or that is made here by their function, or in memory.
   * @throws {PolicyError} INVALID_OPTION for options of the module that do not exist.
   */
  constructor(
    @Inject(MODULE_OPTIONS) private readonly options: Options.RateLimitModuleOptions,
    @Inject(ModuleRef) private readonly modules: ModuleRef,
  ) {
    checkNames(MODULE, options, { what: 'RateLimitModule' })
    const { store = () => memoryStore() } = options
    this.#ownsStore = typeof store === 'function'
    // null, unlike undefined, is refused by limiters.
    this.#store = typeof store === 'function' ? (store() ?? null) : store
  }

  /**
   * Closes the limiters that were made here, and then the store, if it was. Nest calls it when the application shuts down.
   * Limiters and stores that were given ready-made are left open.
   */
  async onApplicationShutdown(): Promise<void> {
    const all = this.#made.flatMap((limiters) => limiters())
    await Promise.all(all.map((limiter) => limiter.close()))
    if (this.#ownsStore) await this.#store.close()
  }

  /**
   * Runs a step of the application's start, and returns its result. If it throws, what was made here is closed, as Nest does not
   * shut down an application that has not started.
   */
  starting<T>(step: () => T): T {
    try {
      return step()
    } catch (error) {
      this.onApplicationShutdown().catch(() => {}) // the start fails with its own error
      throw error
    }
  }

  /**
   * Makes a limiter that `RateLimitModule.forFeature` names, and closes it with the module. What `options` leave out is taken from
   * the module's. A second limiter of its name is an error.
   */
  define(options: Options.NamedLimiterOptions): Limiter {
    return this.starting(() => {
      this.#claimName(options.name)
      const limiter = createLimiter({ ...this.#ofLimiters, ...options })
      this.#made.push(() => [limiter])
      return limiter
    })
  }

  /**
   * The limits that the options `given` of a decorator describe; the same ones at every later call. A list (`limits`)
   * gives one limit for each entry. A limit with a name of its own, or with a limiter that exists, is shared by all
   * that these options decorate. Any other is made once for each class (`owner`) and what was decorated (`subject`), so
   * that methods and subclasses count for themselves, and is named `path`. The name of each limiter that is made here is
   * claimed: a second limiter of that name is an error.
   */
  limits(given: Options.RateLimitOptions, owner: object, subject: object, path: string): readonly Limit[] {
    const { limiter, name, limits } = given
    const isShared = name !== undefined || limiter !== undefined || limits !== undefined
    return this.#makeOnce(given, isShared ? given : owner, isShared ? given : subject, () => {
      if (limits !== undefined) return this.#limitsOfList(given)
      if (limiter !== undefined) return [this.#make(given, { limiter: this.#limiterOf(limiter) })]
      return [this.#make(given, { ...this.#ofLimiters, ...pick(given, byLimiters), name: name ?? path })]
    })
  }

  /**
   * The limit that replaces `outer` by `@OverrideRateLimit` on a class or a method (`subject`), with the options in `changes`
   * (of which the last wins) in place of the outer limit's; made once for each class (`owner`). It is still known by the
   * outer limit's name. If `limit`, `window` or another option of limiters changes, it counts in a limiter of its own, called
   * `name`, otherwise in the outer limit's limiter.
   */
  override(
    changes: readonly Options.LimitOverride[],
    outer: Limit,
    owner: object,
    subject: object,
    name: string,
  ): Limit {
    const [limit] = this.#makeOnce(changes.at(-1)!, owner, subject, () => {
      const { name: knownAs, ...rest } = changes.reduce(withChanges)
      checkNames(OVERRIDE, rest, { what: '@OverrideRateLimit' })
      const needsLimiter = Object.keys(rest).some((option) => option in OF_LIMITERS)
      const made = needsLimiter ? this.#ofOwnLimiter(outer, rest, name) : this.#ofOuterLimiter(outer, rest)
      return [{ ...made, knownAs }]
    })
    return limit!
  }

  /**
   * The limit `outer` with changes, in the same limiter. That exists already, so the outer options that describe a limiter are left
   * out, except for a function `policies`, which chooses those of each call.
   */
  #ofOuterLimiter(outer: Limit, changes: OverriddenOptions): Limit {
    const { limiter: _l, name: _n, store: _s, ...given } = outer.given
    const { policies } = given
    const kept = Object.fromEntries(Object.entries(given).filter(([option]) => !(option in OF_LIMITERS)))
    const merged = { ...kept, ...(typeof policies === 'function' && { policies }), ...changes }
    const limit = this.#make(merged, { limiter: outer.limiter }, apartOf(outer, changes))
    return { ...limit, given: { ...outer.given, ...changes } }
  }

  /**
   * The limit `outer` with changes, in a limiter of its own that is called `name`, on the store of the outer one and with its other
   * settings. A limiter that the application has made itself (`shared`) also lends its policies.
   */
  #ofOwnLimiter(outer: Limit, changes: OverriddenOptions, name: string): Limit {
    const { limiter: shared, name: _n, store: _s, ...given } = outer.given
    const policies = shared !== undefined && policiesKept(outer, changes)
    const counted = {
      ...outer.limiter[SETTINGS],
      ...pick(changes as Options.RateLimitOptions, byLimiters),
      name: this.#freeName(name),
    }
    return this.#make(withChanges({ ...given, ...policies }, changes), counted, apartOf(outer, changes))
  }

  /**
   * The limits that were made of these options for `owner`, the class that counts for itself, and `subject`, the class or
   * method that they decorate; or for the options themselves, if all share the limits. The first call makes them by `make`;
   * later calls return the same.
   */
  #makeOnce(options: object, owner: object, subject: object, make: () => readonly Limit[]): readonly Limit[] {
    const byOwner = getOrMake(this.#limits, options, () => new Map<object, Map<object, readonly Limit[]>>())
    return getOrMake(
      getOrMake(byOwner, owner, () => new Map<object, readonly Limit[]>()),
      subject,
      make,
    )
  }

  /**
   * The limits of the option `limits`, which are decided together: one for each entry, known by the name of its limiter. They
   * have no guard of their own, because one guard is made of all limits of a handler, which finds them by their `place` in
   * the list. A function `limits` gives one limit, which brings those `inForce`; a handler of usage has one with its guard.
   */
  #limitsOfList(given: Options.RateLimitOptions): readonly Limit[] {
    const whole = this.#make(given, { ...this.#ofLimiters, ...pick(given, byLimiters) })
    if (USAGE in given) return [whole]
    const { limits, ...common } = given
    const { inForce, limiters } = whole.guard!
    if (typeof limits === 'function') return [{ ...whole, inForce, knownAs: '', guard: undefined }]
    const [first] = limiters as [Limiter]
    const counting = limits!.filter(({ semaphore }) => !semaphore)
    return limits!.map((part, place) => {
      const { semaphore } = part
      const limiter = semaphore ? first : limiters[counting.indexOf(part)]!
      return {
        ...whole,
        limiter,
        place,
        knownAs: (semaphore ?? limiter).name,
        given: { ...common, ...part },
        guard: undefined,
      }
    })
  }

  /**
   * Makes a limit of the options `given`, with the module's defaults for what they leave out. `counted` has the limiter in
   * which its calls count, or the options to make one, whose name is claimed. A limit with `maxWait` is independent, as a call
   * does not wait for several turns; `apart` is the object that an independent limit shares with those of its decision.
   */
  #make(given: Options.RateLimitOptions, counted: Partial<LimiterOfGuard>, apart?: object): Limit {
    const { key: keyOfModule, ...defaults } = pick(this.options, byRequests)
    const { limiter: _limiter, key = keyOfModule, limits, independent = false, ...own } = given
    readOption(flag(false), independent, 'independent', { what: '@RateLimit' })
    const together = limits && { limits: this.#partsOf(limits) }
    const options = { ...defaults, ...own, ...together, ...counted, ...(key && { key: this.#keyOf(key) }) }
    const guard = createGuard(options, nest, (steps) => new OperationSteps(steps), operationsOfSeveral())
    const { limiter, limiters } = guard
    if (!counted.limiter) {
      const made = () => limiters.filter((limiter) => !this.#broughtLimiters.has(limiter))
      this.#made.push(made)
      // The limiter of usage has the name of the limiter whose usage it reads.
      if (!(USAGE in given)) for (const { name } of made()) this.#claimName(name)
    }
    const standsAlone = independent || own.maxWait !== undefined || USAGE in given
    const ofLimit = { guard, limiter, options: guard.options, knownAs: limiter.name, given }
    return { ...ofLimit, apart: standsAlone ? (apart ?? guard.options) : undefined }
  }

  /**
   * The option `limits` as guards take it: limiters that are given by name are looked up, and so are keys that are given
   * as classes of providers. A function becomes one that does so with each list that it returns, once. Any other value is
   * returned as it is, since the guard throws the error for it.
   */
  #partsOf(
    limits: NonNullable<Options.RateLimitOptions['limits']>,
  ): RequestLimitOptions<Options.Call, Options.Call>['limits'] & {} {
    if (typeof limits === 'function') {
      return () => {
        const list = limits()
        return (
          Array.isArray(list) ? getOrMake(this.#partsOfLists, list, () => this.#partsOf(list)) : list
        ) as never
      }
    }
    if (!Array.isArray(limits)) return limits as never
    return limits.map(({ limiter, key, ...part }: Options.PartOfRateLimit = {}) => ({
      ...part,
      ...(limiter !== undefined && { limiter: this.#broughtBy(limiter) }),
      ...(key && { key: this.#keyOf(key) }),
    }))
  }

  /** The options that limiters take from the module. */
  get #ofLimiters(): LimiterSettings {
    return { ...pick(this.options, byLimiters), store: this.#store }
  }

  /** The limiter that an option `limiter` stands for: itself, or the one that `forFeature` has defined under that name. */
  #limiterOf(shared: Limiter | string): Limiter {
    if (typeof shared !== 'string') return shared
    return this.#provided<Limiter>(limiterToken(shared), `limiter '${shared}'`)
  }

  /** The limiter that a part of `limits` brings. It is noted as brought, so that it is not closed with the limits. */
  #broughtBy(shared: Limiter | string): Limiter {
    const limiter = this.#limiterOf(shared)
    // What is no limiter gets its error from the guard.
    if (typeof limiter === 'object' && limiter) this.#broughtLimiters.add(limiter)
    return limiter
  }

  /** Returns `name`, or if that is taken `name` with a number, as an override cannot be renamed. At most 64 characters. */
  #freeName(name: string): string {
    let candidate = name.slice(0, 64)
    for (let i = 2; this.#names.has(candidate); i++) candidate = `${name.slice(0, 60)}-${i}`
    return candidate
  }

  /**
   * Claims a name for one limiter, because two limiters of the same name in one store would share their usage.
   * @throws {PolicyError} INVALID_OPTION if the name is taken.
   */
  #claimName(name: string): void {
    const message = `two limiters are named '${name}': rename one, or define it with forFeature and share it`
    if (this.#names.has(name)) throw new PolicyError('INVALID_OPTION', message)
    this.#names.add(name)
  }

  /**
   * The provider that an option names, of any module.
   * @throws {PolicyError} INVALID_OPTION for one that Nest does not have, or makes anew for each request.
   */
  #provided<T>(token: string | symbol | Type<T>, option: string): T {
    try {
      return this.modules.get<T>(token, { strict: false })
    } catch (error) {
      const why = `${option} must be a provider of the application, without dependencies that are made for each request`
      throw new PolicyError('INVALID_OPTION', `${why}: ${(error as Error).message}`, { cause: error })
    }
  }

  /**
   * The function that finds a call's key: the user's own function, or for the class of a provider, the `key` method of
   * Nest's instance of it. A class is told from a function by the method on its prototype.
   */
  #keyOf(key: KeyOfCall | Type<Options.KeyProvider>): KeyOfCall {
    if (!(key.prototype as Options.KeyProvider | undefined)?.key) return key as KeyOfCall
    const provider = this.#provided(key as Type<Options.KeyProvider>, `key ${key.name}`)
    return (call, source) => provider.key(call, source)
  }
}

type OverriddenOptions = Omit<Options.LimitOverride, 'name'>

/** The object that an overridden limit shares with those of its decision. What waits for its turn is decided alone. */
function apartOf(outer: Limit, { maxWait }: OverriddenOptions): object | undefined {
  return maxWait === undefined ? outer.apart : undefined
}

type LimiterOfGuard = Pick<RequestLimitOptions<unknown, unknown>, 'limiter' | 'name' | keyof LimiterSettings>

const { byLimiters, byRequests } = INHERITED
const MODULE = Object.fromEntries(
  ['limits', ...Options.DEFAULTS, 'maxBuffered'].map((name) => [name, unchecked()]),
)
/** A limit counts in the limiter that it replaces, or in one of its own in the same store. */
const { limiter: _limiter, store: _store, ...REPLACED } = REQUEST_LIMIT
const OVERRIDE = { ...REPLACED, independent: unchecked() }
const OF_LIMITERS = { ...LIMITER, limit: 0, window: 0 }

/**
 * The policies that an override keeps of a limit in a shared limiter: those of its options, else the limiter's own, also for calls for
 * which a function `policies` chooses none. A function is left as it is where the changes have a `limit` for such calls.
 */
function policiesKept({ given: { policies }, limiter }: Limit, changes: Partial<Options.RateLimitOptions>) {
  if (typeof policies !== 'function') return { policies: policies ?? limiter.policies }
  if ('limit' in changes) return {}
  return { policies: (call: Options.Call) => chain(policies(call), (chosen) => chosen ?? limiter.policies) }
}

/** The options `given` with `changes` in their place: `policies` replace a limit with its window, and the other way round. */
function withChanges<Given extends Partial<Options.RateLimitOptions>>(
  given: Given,
  changes: Partial<Given>,
): Given {
  const { limit: _l, window: _w, policies, ...others } = given
  const replaces =
    changes.policies || (Array.isArray(policies) && ('limit' in changes || 'window' in changes))
  return { ...(replaces ? others : given), ...changes } as Given
}
