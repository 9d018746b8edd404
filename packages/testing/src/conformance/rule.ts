/** Options of a factory, with the window in milliseconds. */
export interface Options {
  readonly limit: number
  readonly window: number
  readonly capacity?: number
  readonly burst?: number
  readonly buckets?: number
  readonly count?: 'whole' | 'weighted'
  readonly refill?: 'greedy' | 'interval'
  readonly slots?: number
  /** Any other option of one algorithm. */
  readonly [option: string]: unknown
}

/** One policy in exact numbers, read from its options and never from the product. Times in microseconds. */
export interface Rule {
  readonly model: Model
  readonly options: Options
  readonly limit: bigint
  /** Most units at once. */
  readonly capacity: bigint
  readonly window: bigint
  /** Microseconds that elapsed time is rounded down to, where numbers are multiplied by the window. */
  readonly tick: bigint
  readonly windowTicks: bigint
}

/** One write to a key, as one policy of the list sees it: give-backs at the instant they came, the rest as booked. */
export interface Write {
  readonly kind: 'admit' | 'charge' | 'refund' | 'release'
  readonly at: bigint
  readonly cost: bigint
  /** Of a release: the charge of which `cost` units are given back. */
  readonly charge?: { readonly at: bigint; readonly cost: bigint }
  /** The numbers that came with this call. */
  readonly rule: Rule
}

/**
 * One algorithm, described a second time and naively: every write is kept, everything is counted again from the
 * first write for every question, in BigInt. Waits and resets follow from `room` alone (see instant.ts).
 */
export interface Model<Standing = unknown> {
  /** The option that sets the most units at once, where there is one; else that is the limit. */
  readonly capacity?: 'capacity' | 'burst'
  /** Largest limit that the contract allows, where it names one. */
  readonly largestLimit?: number
  /** Options that the algorithm requires beside the numbers, of the plain shape and of all variants that give no others. */
  readonly plain?: Partial<Options>
  /** The one window in milliseconds, the longest, of an algorithm without an option for it. Its most in a span may be exceeded by none. */
  onlyWindow?(options: Partial<Options>): number
  /** Options that lead to shapes of their own: every law is run on each, and on the plain options. */
  readonly variants?: readonly Partial<Options>[]
  /** Further options to draw from, which make other shapes of the same variant. Those of a variant go before them. */
  readonly draws?: readonly Partial<Options>[]
  /** Options on which the shape does not depend, to draw from: calls on one key may differ in them. */
  readonly listDraws?: readonly Partial<Options>[]
  /** Whether numbers are multiplied by the window, so that a tick is a millisecond when it is above one hour. */
  multiplied(options: Partial<Options>): boolean
  /** The state that these writes leave behind; `before` is that of a time before the key was full again, if there was one. */
  recount(writes: readonly Write[], before?: Standing): Standing
  /**
   * Units that fit at an instant no earlier than the last booked one: below 0 where more was charged than fits.
   * Without further writes it never falls as the instant grows.
   */
  room(standing: Standing, rule: Rule, instant: bigint): bigint
  /**
   * Everything that is kept of charges at an instant, in parts of a unit: what a write took or gave is the difference.
   */
  kept(standing: Standing, rule: Rule, instant: bigint): bigint
  /**
   * Whether what a release frees may show with a later one, so that the promise holds for what was asked to be given back
   * and not for what was reported.
   */
  releasesLater?(options: Partial<Options>): boolean
  /** How many of these parts are a unit; default 1. */
  parts?(rule: Rule): bigint
  /** The promise: the most net cost that may be admitted at instants within the closed span. */
  bound(rule: Rule, from: bigint, to: bigint): bigint
  /**
   * The options by which a store decides where units are served from memory up to `ttl` milliseconds after they were booked
   * (docs/decisions/0008-leases.md); undefined if they leave nothing to lease. Without it the algorithm cannot be leased.
   */
  leased?(options: Options, ttl: number): Options | undefined
  /** The promise for what is served so; default `bound`. */
  leasedBound?(rule: Rule, from: bigint, to: bigint): bigint
  /** Which units a refund takes out of the trace: the newest of all, or the newest at or before its instant. */
  readonly refunds: 'newest' | 'newest until now'
}

const HOUR_MS = 3_600_000

/**
 * Returns the numbers of a policy with these options, as BigInt, so that a model's arithmetic is exact. The option `window` is in
 * milliseconds, but `window` and `tick` of the result are in microseconds. A tick is the unit in which the algorithm counts time
 * (`ticksOf`), and `windowTicks` is how many of them a window has. The capacity is the option that the model names (`capacity` or
 * `burst`), or the limit where it names none or the option is left out.
 */
export function ruleOf(model: Model, options: Options): Rule {
  const tick = ticksOf(model, options)
  const window = BigInt(options.window) * 1000n
  return {
    model,
    options,
    limit: BigInt(options.limit),
    capacity: BigInt((model.capacity && options[model.capacity]) ?? options.limit),
    window,
    tick,
    windowTicks: window / tick,
  }
}

/**
 * Microseconds in a tick, the unit in which an algorithm counts time: 1, or 1,000 where numbers are multiplied by a window above
 * one hour, which keeps the products exact.
 */
export function ticksOf(model: Model, options: Partial<Options> & { readonly window: number }): bigint {
  return model.multiplied(options) && options.window > HOUR_MS ? 1000n : 1n
}
