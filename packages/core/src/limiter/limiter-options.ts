import type { Policy } from '../algorithms/contract/policy.js'
import { GUARD, type GuardOptions } from '../stores/guard-options.js'
import type { Store } from '../stores/store.js'
import { checkContract } from '../values/contract.js'
import { checkCost } from '../values/cost.js'
import type { Duration } from '../values/duration.js'
import { expectedButGot, InputError, PolicyError } from '../values/errors.js'
import * as option from '../values/options.js'
import { nearing } from './nearing.js'
import { ACT, type ActOptions } from './overrides.js'
import { penalty, type PenaltyOptions } from './penalty-options.js'

export interface LimiterOptions extends GuardOptions {
  /**
   * Appears in keys, headers and metrics: 1 to 64 characters of printable ASCII. Required with a `store`, which other
   * limiters may share.
   * @default 'default'
   */
  readonly name?: string
  /**
   * 1 to 10 policies. A call must pass all of them; if one denies it, it is charged under none. A function is asked at each
   * call that brings no list for the one in force, which is the same list until it changes.
   */
  readonly policies: readonly Policy[] | (() => readonly Policy[])
  /**
   * The other lists of policies that calls may bring, as all processes use them. `block`, `hold`, `reset`, `unblock` and the
   * blocks of a `penalty` are written under each of them, also where this process has not used it yet.
   * @default []: they reach the lists that calls of this process have brought
   */
  readonly tiers?: readonly (readonly Policy[])[]
  /**
   * Where the state is kept. `limiter.close()` closes the default store, but not one that is passed in.
   * @default memoryStore()
   */
  readonly store?: Store
  /**
   * Blocks a key that goes on calling after it was refused, for longer each time. A limiter with a penalty asks the store
   * about every call until a block; it takes no `leases`.
   * @default undefined: no penalty
   * @throws {PolicyError} INVALID_PENALTY.
   */
  readonly penalty?: PenaltyOptions
  /**
   * The limiter reserves: `reserve`, `using` and `reserveAll` take units that the store gives back at an end. At most `max`
   * reservations of a key are open at once, 1 to 10,000, by default 1,000. It counts in a state of its own, which begins anew.
   * @default undefined: it does not, and pays nothing
   */
  readonly reservations?: { readonly max?: number }
  /**
   * false is shadow mode: decides and counts as usual, but allows every call.
   * @default true
   */
  readonly enforce?: boolean
  /**
   * Shares of a limit, such as 0.8 or [0.8, 1]: the event 'nearing' says, once for each key and window in the whole fleet, that a
   * charge has crossed one; again after a giving back below it. Of calendar and fixed windows alone. A reservation counts when it is
   * made: one that is settled at more than its cost crosses none.
   * @default undefined: none
   * @throws {PolicyError} INVALID_NEARING, also where the limiter's own list, or one of `tiers`, has no such window.
   */
  readonly nearing?: number | readonly number[]
}

/** The options of a limiter that adapters copy for limiters of their own: where it counts, and what it does in an outage. */
export type LimiterSettings = Omit<
  LimiterOptions,
  'name' | 'policies' | 'tiers' | 'penalty' | 'reservations' | 'nearing'
>

export interface ShapeOptions {
  /**
   * Policies of this call, for example those of the caller's tier. Lists of equal shapes (algorithms, windows and buckets,
   * in order) share what was consumed. A list of other shapes has a state of its own.
   * @default the limiter's policies
   */
  readonly policies?: readonly Policy[]
}

export interface CallOptions extends ShapeOptions {
  /**
   * Units that the call takes, a whole number from 0 to 2^31. A cost of 0 only reads.
   * @default 1
   */
  readonly cost?: number
}

export interface AcquireOptions extends CallOptions {
  /**
   * The longest wait for the turn, up to 1 day; a number is in milliseconds. A call whose turn is later is denied at once.
   * @default '30s'
   */
  readonly maxWait?: Duration
  /** When it aborts, the place is given back and the call rejects with the signal's reason. */
  readonly signal?: AbortSignal
}

/** Options of `block` and `hold`. */
export interface BlockOptions extends ShapeOptions, ActOptions {}

const SHAPE = { policies: option.unchecked() } satisfies option.DeclarationOf<ShapeOptions>
const BLOCK = { ...SHAPE, ...ACT } satisfies option.DeclarationOf<BlockOptions>
const CALL = { ...SHAPE, cost: option.unchecked() } satisfies option.DeclarationOf<CallOptions>
const ACQUIRE = {
  ...CALL,
  maxWait: option.duration(0, '1d', '30s'),
  signal: option.unchecked(),
} satisfies option.DeclarationOf<AcquireOptions>
const ABOUT_CALL = { what: 'a call', error: InputError }

/**
 * The cost in the options of a call, in units; 1 if it is left out. `declaration` lists the options that the call may have.
 * @throws {InputError} INVALID_COST; INVALID_OPTION for an option that a call does not have.
 */
export function costOf(options: CallOptions | undefined, declaration: option.Declaration = CALL): number {
  if (options === undefined) return 1
  // Other packages take the cost itself here. Taken for options it would count as 1 in silence.
  if (typeof options !== 'object' || options === null) {
    const bound = 'the options of a call must be an object like { cost: 3 }'
    throw expectedButGot(InputError, 'INVALID_COST', bound, options)
  }
  option.checkNames(declaration, options, ABOUT_CALL)
  return options.cost === undefined ? 1 : checkCost(options.cost)
}

/** Under `CHECKED` they have themselves, so that a copy is checked anew; under `KEY` the key they are for, as stores keep it. */
export const CHECKED = Symbol()
export const KEY = Symbol()
/** Under `REPORTS` who asks for another has what keeps the reports to listeners, to be made in the context of that call. */
export const REPORTS = Symbol()

/** Options of `acquire` that its caller has checked. Those of another copy of this package are checked anew. */
export interface CheckedOptions extends AcquireOptions {
  readonly [CHECKED]: unknown
  readonly [KEY]?: string
  readonly [REPORTS]?: { keep(report: () => void): void }
  readonly cost: number
  /** In milliseconds. */
  readonly maxWait: number
  readonly signal: AbortSignal
}

/**
 * The cost and the longest wait, in milliseconds, of a call of `acquire`: 30 s if it is left out.
 * @throws {InputError} INVALID_COST, INVALID_DURATION, INVALID_OPTION.
 */
export function waitOf(options: AcquireOptions): Pick<CheckedOptions, 'cost' | 'maxWait' | typeof KEY> {
  const cost = costOf(options, ACQUIRE)
  return { cost, maxWait: option.readOption(ACQUIRE.maxWait, options.maxWait, 'maxWait', ABOUT_CALL) }
}

/**
 * Checks the options of a call such as `block`, which takes no option but `policies`.
 * @throws {InputError} INVALID_OPTION.
 */
export function checkShapeOptions(options: ShapeOptions | undefined): void {
  if (options !== undefined) option.checkNames(SHAPE, options, ABOUT_CALL)
}

/**
 * Checks the options of `block` and `hold`.
 * @throws {InputError} INVALID_OPTION.
 */
export function checkBlockOptions(options: BlockOptions | undefined): void {
  if (options !== undefined) option.readOptions(BLOCK, options, ABOUT_CALL)
}

/** Options of `createLimiter`. */
export const LIMITER = {
  name: option.printableName,
  policies: option.unchecked<readonly Policy[]>(),
  tiers: option.custom('lists of policies', (given) => (areLists(given) ? given : option.REFUSED), []),
  store: option.checkedBy(checkStore),
  ...GUARD,
  penalty,
  reservations: option.nested({ max: option.whole(1, 10_000, 1000) }),
  enforce: option.flag(true),
  nearing,
} satisfies option.DeclarationOf<LimiterOptions>

/** Whether the option `tiers` is a list of lists. The policies in them are checked when the limiter opens each list. */
function areLists(given: unknown): given is NonNullable<LimiterOptions['tiers']> {
  return Array.isArray(given) && given.every((each) => Array.isArray(each))
}

/**
 * The options of `createLimiter`, checked and with their defaults. A penalty and leases exclude each other: calls served from a
 * lease do not reach the store, which would count refusals.
 * @throws {PolicyError} INVALID_OPTION, NAME_REQUIRED, or the code of an option.
 */
export function readLimiterOptions(options: LimiterOptions): option.Settings<typeof LIMITER> {
  const settings = option.readOptions(LIMITER, options, { what: 'createLimiter' })
  if (settings.store !== undefined && settings.name === undefined) {
    const why = 'a limiter with a store needs a name, as others may share it'
    throw new PolicyError('NAME_REQUIRED', why)
  }
  if (settings.penalty !== undefined && settings.leases !== undefined) {
    throw new PolicyError('INVALID_OPTION', 'penalty and leases exclude each other: leave one of them out')
  }
  if (settings.reservations !== undefined && settings.leases !== undefined) {
    throw new PolicyError(
      'INVALID_OPTION',
      'reservations and leases exclude each other: leave one of them out',
    )
  }
  return settings
}

/**
 * Returns the option `store` if it is a store, and throws otherwise. A store has `keyspace`, `now` and `close`. It is in this
 * process (`local`), or it brings its `guard`: what a limiter puts before a store elsewhere, such as the deadline and the failure
 * mode. The error gives advice for the likely mistake, such as a URL or a Redis client without `redisStore`.
 * @throws {PolicyError} INVALID_OPTION; VERSION_MISMATCH.
 */
export function checkStore(store: unknown): Store {
  const parts = (store ?? {}) as Record<string, unknown>
  const has = (...names: readonly string[]): boolean =>
    names.every((name) => typeof parts[name] === 'function')
  if (has('keyspace', 'now', 'close')) {
    checkContract('store', parts)
    if (parts['local'] || parts['guard']) return store as Store
    const why = "to a store that is not local add guard, imported from '@sluice/core/store'"
    throw new PolicyError('INVALID_OPTION', why)
  }
  const isUrl = typeof store === 'string'
  const line = isUrl ? 'write redisStore(url)' : has('sendCommand') ? 'write redisStore(client)' : undefined
  const advice = line ?? (has('then') ? 'await it' : typeof store === 'function' ? 'call it' : OTHERS)
  const what = `store must be made by memoryStore() or redisStore(): ${advice}`
  throw expectedButGot(PolicyError, 'INVALID_OPTION', what, isUrl ? hidden(store) : store)
}

const OTHERS = 'those of other packages cannot be used'

/** Returns a URL with an ellipsis in place of the user and the password, if it has them. */
function hidden(url: string): string {
  return url.replace(/\/\/[^]*@/, '//…@')
}
