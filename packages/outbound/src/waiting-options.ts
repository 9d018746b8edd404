import { type Duration, InputError, type Limiter, PolicyError, type Semaphore } from '@sluice/core'
import {
  checkedBy,
  type DeclarationOf,
  duration,
  func,
  sharedInProcess,
  nested,
  type Option,
  custom,
  REFUSED,
  type Settings,
  storedKey,
  whole,
} from '@sluice/core/internal'
import { type AdaptiveRateOptions, adaptiveRates } from './adaptive/options.js'
import { RETRY_BUDGET, type RetryBudgetOptions } from './retry-budget.js'

/** How calls wait, whatever they do. */
export interface WaitingOptions {
  /**
   * An unknown rate, in place of a limiter: turns of a key come evenly at a rate that goes up until calls are refused,
   * and stays below. Clients that are given the same object share it. Each process finds its own part of the rate.
   */
  readonly adaptive?: AdaptiveRateOptions
  /**
   * The longest that a call waits for permits and turns, over all its attempts: up to 1 day; a number is in milliseconds.
   * @default '30s'
   */
  readonly maxWait?: Duration
  /**
   * Turns that this process may book in advance per key, 1 to 1000. A newly arrived high-priority call waits for at most this many.
   * Raise it if the process stalls now and then, or for more than a few hundred calls per second with a small burst.
   * @default 1
   */
  readonly prefetch?: number
  /**
   * How late a call may go out after its turn, up to 1 day. A call that a busy process sends later is charged a second turn,
   * so that the limit holds at the other side too. A number is in milliseconds.
   * @default 1 % of the shortest window, at least 10 ms
   */
  readonly lateness?: Duration
  /**
   * Most calls that wait in this process for one key, 1 to 1,000,000. Further ones are refused.
   * @default 10_000
   */
  readonly maxQueue?: number
  /**
   * How many calls of a tenant of `fair` go out while one of a tenant of weight 1 does, a whole number from 1 to 1000.
   * @default () => 1
   */
  readonly weight?: (tenant: string) => number
  /**
   * The longest pause that the other side is granted, up to 1 day; a number is in milliseconds.
   * @default '15m'
   */
  readonly maxHold?: Duration
  /**
   * The retries of refused calls, beyond those that waited as long as the other side asked for. A call that gets no retry ends
   * with its refusal.
   * @default { ratio: 0.1, perSecond: 1 }
   */
  readonly retryBudget?: RetryBudgetOptions
}

/** The options of every client and queue. */
export const WAITING = {
  maxWait: duration(0, '1d', '30s'),
  prefetch: whole(1, 1000, 1),
  lateness: duration(0, '1d'),
  maxQueue: whole(1, 1_000_000, 10_000),
  weight: func<NonNullable<WaitingOptions['weight']>>(),
  maxHold: duration(1, '1d', '15m'),
  retryBudget: nested(RETRY_BUDGET),
  limiter: oneOrSeveral(madeBy<Limiter | Semaphore>('createLimiter')),
  semaphore: madeBy<Semaphore>('createSemaphore'),
  adaptive: checkedBy((given, name) => adaptiveRates(given as AdaptiveRateOptions, name)),
} satisfies DeclarationOf<
  WaitingOptions & { readonly limiter?: LimiterOption; readonly semaphore?: Semaphore }
>

/** A limiter, or a list of several and of semaphores beside them. */
export type LimiterOption = Limiter | readonly [Limiter | Semaphore, ...(Limiter | Semaphore)[]]

/** A semaphore of which each call takes a permit. */
export interface OwnPermits {
  readonly semaphore: Semaphore
  /** The place of its key among those of a call; undefined: the key of the call's last turn. */
  readonly place: number | undefined
}

/**
 * Returns the limiters of a client, in the order in which calls take their turns, and its semaphores, in an order that is the
 * same for all calls: otherwise two calls could wait for each other's permit.
 */
export function sourcesOf({ limiter, semaphore }: Pick<WaitingSettings, 'limiter' | 'semaphore'>): {
  readonly limiters: readonly Limiter[]
  readonly permits: readonly OwnPermits[]
} {
  const sources = [limiter ?? []].flat()
  const limiters = sources.filter((source) => !isSemaphore(source)) as Limiter[]
  // The keys of a call have those of limiters first, and then those of semaphores (`keysFor`).
  const listed: OwnPermits[] = sources
    .filter(isSemaphore)
    .map((source, i) => ({ semaphore: source, place: limiters.length + i }))
  const permits = semaphore ? [{ semaphore, place: undefined }, ...listed] : listed
  return {
    limiters,
    permits: permits.sort((one, other) => inOneOrder(one.semaphore, other.semaphore)),
  }
}

/** Sorts semaphores by their names, and those of one name in the order in which clients of this process were given them. */
function inOneOrder(one: Semaphore, other: Semaphore): number {
  if (one.name !== other.name) return one.name < other.name ? -1 : 1
  return numberOf(one) - numberOf(other)
}

/** The number of a semaphore, which is the same for all copies of this package in one process. */
function numberOf(semaphore: Semaphore): number {
  return sharedInProcess('numbers-of-semaphores', numbering)(semaphore)
}

/** Makes a function that numbers semaphores, from 0 in the order in which it is first asked for each. */
function numbering(): (semaphore: Semaphore) => number {
  const numbers = new WeakMap<Semaphore, number>()
  let count = 0
  return (semaphore) => {
    const number = numbers.get(semaphore) ?? count++
    numbers.set(semaphore, number)
    return number
  }
}

/**
 * Returns the permits that a call takes, each with its key, in the order that is the same for all calls: that of the semaphores,
 * and for several permits of one semaphore that of the keys. `key` is that of the call's last turn, `keys` are all its keys.
 */
export function permitsOf(
  sources: readonly OwnPermits[],
  key: string,
  keys: readonly [string, ...string[]],
): readonly { readonly semaphore: Semaphore; readonly key: string }[] {
  return sources
    .map(({ semaphore, place }) => ({ semaphore, key: place === undefined ? key : keyAt(keys, place) }))
    .sort((one, other) => inOneOrder(one.semaphore, other.semaphore) || (one.key < other.key ? -1 : 1))
}

/** The key at a place of the keys of a call: one for each, or one for all. */
export function keyAt(keys: readonly [string, ...string[]], place: number): string {
  return keys[place] ?? keys[0]
}

function isSemaphore(source: Limiter | Semaphore): source is Semaphore {
  return 'limitOf' in source
}

/** Durations are in milliseconds. */
export type WaitingSettings = Omit<Settings<typeof WAITING>, 'maxWait' | 'maxQueue'> & {
  /** Undefined: not bounded. */
  readonly maxQueue: number | undefined
}

/**
 * Checks that options name a limiter, a semaphore or `adaptive`, not both a limiter and `adaptive`, and no weight without `fair`.
 * @throws {PolicyError} INVALID_OPTION.
 */
export function checkSources(settings: WaitingSettings & { readonly fair?: unknown }): void {
  const { limiter, semaphore, adaptive, weight, fair } = settings
  if (limiter && sourcesOf(settings).limiters.length === 0) {
    throw new PolicyError(
      'INVALID_OPTION',
      'the list limiter must have one: semaphores stand beside limiters',
    )
  }
  if (weight && !fair) throw new PolicyError('INVALID_OPTION', 'weight needs fair, which names the tenants')
  if (limiter && adaptive) {
    const why = 'adaptive finds a rate in place of a limiter: leave out one of them'
    throw new PolicyError('INVALID_OPTION', why)
  }
  if (!limiter && !semaphore && !adaptive) {
    throw new PolicyError('INVALID_OPTION', 'a limiter, a semaphore or adaptive is required')
  }
}

/**
 * Whether the limit is unknown and searched for: a rate (`adaptive`), or a number of calls at once (a semaphore with an adaptive
 * limit). Refusals are then the way to find it.
 */
export function isSearched(settings: WaitingSettings): boolean {
  return (
    settings.adaptive !== undefined ||
    sourcesOf(settings).permits.some(({ semaphore }) => semaphore.isAdaptive)
  )
}

/** Units that a call takes. */
export const cost = whole(0, 2 ** 31, 1)

export const priority: Option<number> = {
  accepts: 'a number',
  otherwise: 0,
  parse: (value) => (typeof value === 'number' && !Number.isNaN(value) ? value : REFUSED),
}

/**
 * An option that takes what the factory of this name makes. It is known by its method `acquire` and not by its class: the
 * ESM and the CJS build of @sluice/core may meet in one process, each with classes of its own.
 */
function madeBy<Made extends Limiter | Semaphore>(factory: string): Option<Made | undefined> {
  return custom(`made by ${factory}()`, (value) =>
    typeof (value as Made | null)?.acquire === 'function' ? (value as Made) : REFUSED,
  )
}

/** An option of which each limiter has one: the same for all, or a list in their order. */
export type OneOrSeveral<Each> = Each | readonly [Each, ...Each[]]

/**
 * Returns an option that takes what `one` takes, or a list of 1 to 16 such values. It refuses a list that is empty, too long or has
 * a bad item.
 */
export function oneOrSeveral<Setting>(
  one: Option<Setting>,
): Option<Setting | readonly [Exclude<Setting, undefined>, ...Exclude<Setting, undefined>[]]> {
  return {
    ...one,
    accepts: `${one.accepts}, or a list of up to 16`,
    parse(value, name) {
      if (!Array.isArray(value)) return one.parse(value, name)
      const settings = value.map((item) => one.parse(item, name))
      const isRefused = settings.includes(REFUSED) || settings.length < 1 || settings.length > 16
      return isRefused ? REFUSED : (settings as never)
    },
  }
}

/**
 * Checks the keys of a call, one for each limiter and semaphore of the option `limiter` in their order, or one key without that
 * option. Returns the keys of the limiters, followed by those of the semaphores.
 * @throws {InputError} INVALID_KEY for an invalid key, and for a list of keys that is shorter or longer than the option.
 */
export function keysFor(
  limiter: WaitingSettings['limiter'],
  keys: readonly [string, ...string[]],
): readonly [string, ...string[]] {
  const sources = [limiter ?? []].flat()
  const count = sources.length || 1
  if (keys.length !== count) {
    const why = `${count} limiters take one key or a list of ${count}, got ${keys.length}`
    throw new InputError('INVALID_KEY', why)
  }
  // All are checked before the first limiter is asked for a turn.
  for (const key of keys) storedKey(key)
  const isOfPermit = (_: string, i: number): boolean => sources[i] !== undefined && isSemaphore(sources[i])
  const ofPermits = keys.filter(isOfPermit)
  if (ofPermits.length === 0) return keys
  return [...keys.filter((key, i) => !isOfPermit(key, i)), ...ofPermits] as unknown as typeof keys
}
