import { CONTRACT, CONTRACT_NUMBER } from '../../values/contract.js'
import { type Duration, formatDuration } from '../../values/duration.js'
import { PolicyError } from '../../values/errors.js'
import * as option from '../../values/options.js'
import { notShort } from '../../values/short-duration.js'
import type { Calendar } from '../calendar/calendar.js'
import type { State } from './state.js'

/** The state of a key under one policy, as callers see it; written in place by `Algorithm.view`. */
export interface View {
  /** Units that could be spent now, rounded down; below 0 by the units that count above the capacity. */
  remaining: number
  /** Instant at which `remaining` is full again, in microseconds; `now` when it is full already. */
  resetAt: number
}

/** Units that were charged together. */
export interface Charge {
  /** The instant at which they count, in microseconds. */
  readonly at: number
  readonly cost: number
}

/**
 * One algorithm: pure functions over one key's state. They read no clock, do no I/O and keep nothing.
 * Instants are whole microseconds. A new state is all zeros with an empty ring and means "nothing consumed".
 */
export interface Algorithm {
  /** File name of the algorithm, in kebab case, followed by its variant where it has one. */
  readonly name: string
  /** Number cells that one key needs. */
  cells(policy: Policy): number
  /** Whether the state holds a ring of instants. */
  readonly ring: boolean
  /** Whether units count until their window ends, all together: a share of the limit is then crossed once in each. */
  readonly hasWindows?: true
  /**
   * The earliest moment at which `cost` (above 0) may pass: `from` if it fits then, a later instant if it must
   * wait, Infinity if it never fits. `from` is never before the last booked instant.
   */
  earliest(state: State, policy: Policy, from: number, cost: number): number
  /**
   * Books `cost` at the instant `at`. A negative cost gives the newest units back, never below empty. Charges that were not
   * checked with `earliest` first (from `settle`) may exceed the limit; recorded usage is capped at twice the
   * capacity. Returns the units that took effect, which may be a fraction.
   */
  admit(state: State, policy: Policy, at: number, cost: number): number
  /** Fills `view` with the state of the key at `now`. Writes nothing else. */
  view(state: State, policy: Policy, now: number, view: View): void
  /**
   * The plain call in one pass: `earliest` from `now`, `admit` at `now` if the cost fits then, and `view`. Returns the
   * earliest instant; `now` means admitted. Called only if nothing is booked after `now`. Optional: it must decide exactly as
   * the three functions do, which a law of the conformance kit checks.
   */
  readonly take?:
    ((this: void, state: State, policy: Policy, now: number, cost: number, view: View) => number) | undefined
  /**
   * Gives back `units` of one charge, as far as they still count at `now`, which is never before the last booked instant.
   * Afterwards the remaining units, counted at the instants at which they were charged, obey the algorithm's promise.
   * Bookings stay where they are. Returns the units that took effect, which may be a fraction.
   */
  release(state: State, policy: Policy, now: number, charge: Charge, units: number): number
  /** Forgets what earlier charges have left in the cells of a key that is full again, as the next one begins its state anew. */
  renew?(state: State, policy: Policy): void
  /**
   * Whether a call can have left this state, the twin of `valid` in Lua. `latest` is the instant of the last write or booking,
   * and `expiresAt` comes at least a second after `resetAt` under the limit of the last write.
   */
  isValid?(state: State, policy: Policy, latest: number, expiresAt: number): boolean
  /** What the algorithm promises. */
  readonly bounds: Bounds
  /** Whether a charge drains, so that less of it can be given back the later that is. */
  readonly drains?: boolean
  /** How booked units may be served later. Without it the algorithm cannot be leased. */
  readonly leasing?: Leasing
  /**
   * Throws PolicyError if the numbers of a policy would not give exact results. `capacityName` is the option that set the
   * capacity, for the message.
   */
  check?(policy: Policy, capacityName: string): void
}

/** What an algorithm promises under the numbers of a policy. Spans are microseconds. */
export interface Bounds {
  /** The most units that pass in any half-open span `(t - span, t]` of whole microseconds; Infinity where nothing bounds them. */
  readonly most: (policy: Policy, span: number) => number
  /**
   * The span that decides whether a call can be denied: none is while a key asks for at most `capacity` units in every
   * `(t - reach, t]`.
   */
  readonly reach: (policy: Policy) => number
  /** The window, or of a debt the time in which a full one drains: calls of a key affect each other for about so long. */
  readonly scale: (policy: Policy) => number
}

/** Makes policies of one algorithm. */
export interface PolicyFactory<Options extends object> {
  (options: Options): Policy
  /** The declaration of its options, by which files of policies are read and described. */
  readonly options: option.Declaration
}

/**
 * Makes the factory `name`, which reads and checks its options as declared and has `make` make a policy of them. Call it behind
 * a `PURE` comment, so that bundles leave out algorithms that are not used.
 */
export function factory<Options extends object, D extends option.DeclarationOf<Options>>(
  name: string,
  options: D,
  make: (settings: option.Settings<D>) => Policy,
): PolicyFactory<Options> {
  const read = { [name]: (given: Options) => make(option.readOptions(options, given, { what: name })) }[name]!
  return Object.assign(read, { options })
}

/** The `reach` and `scale` of an algorithm whose units come back after a window, in microseconds. */
export function windowOf({ window }: Policy): number {
  return window
}

/** How an algorithm keeps its promise at the moments at which units are served, some time after they were booked. */
export interface Leasing {
  /** The policy to book by if units are served up to `ttlMs` later; undefined if it would leave no unit. */
  book(policy: Policy, ttlMs: number): Policy | undefined
  /** The instant by which units booked at `now` must be served, whatever the ttl; Infinity if only the ttl ends a lease. */
  end(policy: Policy, now: number): number
}

/** One rule: an algorithm and its numbers. Made by `gcra()`, `slidingLog()` and the other factories. */
export class Policy {
  readonly algorithm: Algorithm
  readonly name: string
  /** Whether the name was given. If default names are equal, the algorithm is added to them. */
  readonly isNamed: boolean
  /** Units per window: the sustained rate. 0 denies every call: limiters decide that, so algorithms never see it. */
  readonly limit: number
  /** Most units at once; 0 if the limit is. */
  readonly capacity: number
  readonly windowMs: number
  /** The window in microseconds. */
  readonly window: number
  /** Microseconds in a tick, the unit in which numbers are multiplied by the window. */
  readonly tick: number
  /** The window in ticks. */
  readonly windowTicks: number
  /** Equal parts of the window that are counted separately; 1 if the algorithm has none. */
  readonly buckets: number
  /** The boundaries of its windows, where they are those of a calendar. They are no part of the shape, but their period is. */
  readonly calendar: Calendar | undefined
  /** Identifies the layout and meaning of the state: algorithm, window, buckets; not limit and capacity. */
  readonly shape: string
  /** Whether its capacity was not given, so that it is the limit. */
  readonly isCapacityLimit: boolean
  readonly #numbers: PolicyNumbers

  /**
   * Makes a policy of settings that a factory has read and checked. Where units are multiplied by the window
   * (`numbers.multiplied`), a window above an hour is counted in ticks of 1000 microseconds, so that larger numbers of units
   * still give exact products; otherwise a tick is one microsecond. `shape` names what the layout and meaning of stored state
   * depend on. State stays valid if only the limit or the capacity changes, so these are no part of it. The capacity is the limit
   * unless `numbers.capacity` gives one.
   */
  constructor(algorithm: Algorithm, { limit, window, name }: PolicySettings, numbers: PolicyNumbers = {}) {
    this.algorithm = algorithm
    this.limit = limit
    this.windowMs = window
    this.window = window * 1000
    this.tick = this.windowMs > HOUR_MS && numbers.multiplied ? 1000 : 1
    this.windowTicks = this.window / this.tick
    const { name: capacityName = 'capacity', value: capacity = limit } = numbers.capacity ?? {}
    this.capacity = limit === 0 ? 0 : capacity // a limit of 0 admits nothing, whatever the burst
    this.isCapacityLimit = !(numbers.capacity?.isGiven ?? numbers.capacity?.value !== undefined)
    this.buckets = numbers.buckets ?? 1
    this.calendar = numbers.calendar
    const every = numbers.calendar?.every
    this.name = name ?? `${limit}-per-${every ?? formatDuration(window)}`
    this.isNamed = name !== undefined
    this.shape = [algorithm.name, every ?? this.windowMs, numbers.buckets].filter(Boolean).join('/')
    this.#numbers = numbers
    Object.freeze(this)
    algorithm.check?.(this, capacityName)
  }

  /** @internal */
  get [CONTRACT](): number {
    return CONTRACT_NUMBER
  }

  /**
   * A policy with other numbers or another name, checked like a new one. Numbers that are left out stay as they are. An algorithm
   * without an option for the capacity, such as a burst, has its limit as capacity, which then follows a new limit. A policy of
   * limit 0 has capacity 0, so with a new limit it gets back the capacity from before, or, if none is known, its limit.
   * @throws {PolicyError} for invalid numbers.
   */
  with(changes: PolicyChanges): Policy {
    const changed = option.readOptions(CHANGES, changes, { what: 'policy.with' })
    if (this.calendar && changed.window !== undefined) {
      throw new PolicyError('INVALID_OPTION', 'policy.with has no option window for a calendarWindow')
    }
    const { limit = this.limit, window = this.windowMs, name = this.name } = changed
    const capacity = this.#capacityAfter(changed.capacity)
    const numbers = capacity ? { ...this.#numbers, capacity } : this.#numbers
    return new Policy(this.algorithm, { limit, window, name }, numbers)
  }

  /** The option for the capacity after a change to `given`, or to none; undefined if the capacity then follows the limit. */
  #capacityAfter(given: number | undefined): PolicyNumbers['capacity'] {
    const { capacity: declared } = this.#numbers
    const before = this.limit === 0 ? declared?.value : this.capacity
    const value = given ?? (declared ? before : undefined)
    if (value === undefined) return undefined
    const isGiven = given !== undefined || !this.isCapacityLimit
    return { name: declared?.name ?? 'capacity', value, isGiven }
  }
}

/**
 * Whether two lists of policies have equal limits, capacities and calendars. Both must have equal length and shapes (algorithms and
 * windows), which are not compared. A limiter may decide a key by other numbers from call to call, as for another tier: what was
 * found under one list, such as a remembered denial or a lease, holds only under equal numbers.
 */
export function haveEqualNumbers(some: readonly Policy[], others: readonly Policy[]): boolean {
  if (some === others) return true
  return some.every(
    ({ limit, capacity, calendar }, i) =>
      limit === others[i]!.limit && capacity === others[i]!.capacity && calendar === others[i]!.calendar,
  )
}

/** The numbers and the name that `policy.with` may change. */
export interface PolicyChanges extends Partial<PolicyOptions> {
  readonly capacity?: number
}

export interface PolicyOptions {
  /** Units per window, a whole number up to 2^52: the sustained rate. 0 denies every call, for a suspended tier. */
  readonly limit: number
  /** A text such as '250ms', '10s', '1m', '1h' or '1d', or a number of milliseconds, from 1 ms to 365 days. */
  readonly window: Duration
  /**
   * 1 to 64 characters of printable ASCII.
   * @default `<limit>-per-<window>`, for example '100-per-1m'
   */
  readonly name?: string
}

/** Largest product of units and ticks; twice that is still an exact integer in a double. */
export const LARGEST_PRODUCT = 2 ** 52

const limit = option.whole(0, LARGEST_PRODUCT, undefined, 'INVALID_LIMIT')
const window = notShort(option.duration('1ms', '365d', undefined, 'INVALID_WINDOW'))

/** A capacity, or a burst. */
export const capacity = option.whole(1, LARGEST_PRODUCT, undefined, 'INVALID_CAPACITY')

/** Options of every policy. */
export const POLICY = {
  limit: option.required(limit),
  window: option.required(window),
  name: option.printableName,
} satisfies option.DeclarationOf<PolicyOptions>

export type PolicySettings = option.Settings<typeof POLICY>

/** The same without the need to give them: the options of `policy.with`. */
const CHANGES = { ...POLICY, limit, window, capacity } satisfies option.DeclarationOf<PolicyChanges>

interface PolicyNumbers {
  readonly calendar?: Calendar
  readonly capacity?: {
    readonly name: string
    readonly value: number | undefined
    /** Default: whether there is a value. */
    readonly isGiven?: boolean
  }
  readonly buckets?: number
  /** Whether numbers are multiplied by the window; a window above an hour is then counted in milliseconds. */
  readonly multiplied?: boolean
}

const HOUR_MS = 3_600_000
