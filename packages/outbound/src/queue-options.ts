import type { Decision, Duration, Semaphore } from '@sluice/core'
import { type DeclarationOf, duration, func, text, unchecked, whole } from '@sluice/core/internal'
import type { QueueEvent } from './events.js'
import type { RetryBudgetOptions } from './retry-budget.js'
import type { RefusalKind } from './verdict.js'
import {
  cost,
  type LimiterOption,
  type OneOrSeveral,
  oneOrSeveral,
  priority,
  WAITING,
  type WaitingOptions,
} from './waiting-options.js'

export interface QueueOptions extends WaitingOptions {
  /**
   * The longest that a call waits for permits and turns, over all its attempts: up to 1 day; a number is in milliseconds.
   * @default calls wait for as long as it takes, in this process: at most `prefetch` turns are booked ahead
   */
  readonly maxWait?: Duration
  /**
   * Most calls that wait in this process for one key, 1 to 1,000,000. Further ones are refused.
   * @default not bounded
   */
  readonly maxQueue?: number
  /**
   * Names the queue in its events and warnings.
   * @default the name of the limiter, or without one that of the semaphore
   */
  readonly name?: string
  /**
   * Gives calls their turn. Of a list, a call takes the turns one after the other, in the order given, and before the
   * last one a permit of each semaphore in it.
   * @default no limit on the rate; a semaphore or `adaptive` is then required
   */
  readonly limiter?: LimiterOption
  /**
   * Bounds how many calls are under way at once.
   * @default not bounded
   */
  readonly semaphore?: Semaphore
  /**
   * The key whose limit a call counts under, unless the call names one. A list has one for each limiter and semaphore of `limiter`.
   * @default 'default'
   */
  readonly key?: OneOrSeveral<string>
  /**
   * Units that a call takes, unless it names a cost.
   * @default 1
   */
  readonly cost?: number
  /**
   * Of the calls that wait in this process, that with the highest number goes first. For calls that name none.
   * @default 0
   */
  readonly priority?: number
  /**
   * Names the tenant of a call, by what was given to `run`. Among the calls of one priority that wait in this process, tenants then
   * take turns, by cost: one with many calls does not hold up the others.
   * @default calls go first come, first served
   */
  readonly fair?: (fn: (context: never) => unknown, options: RunOptions) => string
  /**
   * Returns after how many milliseconds a function that failed waits for its next turn, or false for no further attempt.
   * `attempt` counts from 1. A time that ends after `maxWait` means no further attempt.
   * @default no further attempt
   */
  readonly retry?: (error: unknown, attempt: number) => number | false | Promise<number | false>
  /**
   * Returns for how many milliseconds all calls of the key pause after this failure, in every process that shares the
   * limiter's store: 0 or undefined for no pause.
   * @default no pause
   */
  readonly pauseOf?: (outcome: { readonly error: unknown }) => number | undefined
  /**
   * Whether a failure is a refusal of the other side for which `pauseOf` knows no time. The second with no success between them
   * pauses the calls of the key for a second, then 2, 4 ... up to a minute. After `'final'` the function is not called again and
   * the key not paused; `'none'` is no refusal, even with a pause.
   * @default only a failure with a pause is one
   */
  readonly isRefusal?: (outcome: { readonly error: unknown }) => RefusalKind
  /**
   * The retries that `retry` may make, beyond those that waited as long as `pauseOf` said.
   * @default not bounded
   */
  readonly retryBudget?: RetryBudgetOptions
  /** Called with every event; `queue.on` listens to one type. */
  readonly onEvent?: (event: QueueEvent) => void
}

export const QUEUE = {
  ...WAITING,
  maxWait: duration(0, '1d'),
  maxQueue: whole(1, 1_000_000),
  name: text('a text', /^/),
  key: oneOrSeveral(text('a text', /^/, 'default')),
  cost,
  priority,
  fair: func<NonNullable<QueueOptions['fair']>>(),
  retry: func<NonNullable<QueueOptions['retry']>>(),
  pauseOf: func<NonNullable<QueueOptions['pauseOf']>>(),
  isRefusal: func<NonNullable<QueueOptions['isRefusal']>>(),
  onEvent: func<NonNullable<QueueOptions['onEvent']>>(),
} satisfies DeclarationOf<QueueOptions>

export interface RunOptions {
  /** The key whose limit the call counts under; a list has one for each limiter and semaphore of `limiter`. */
  readonly key?: OneOrSeveral<string>
  /** Units that the call takes: a whole number from 0 to 2^31. */
  readonly cost?: number
  /** Any number; waiting calls with a higher one go first. */
  readonly priority?: number
  /** Ends the wait and rejects the call with its reason. A function that already runs has to listen itself. */
  readonly signal?: AbortSignal
  /** The longest that the call waits, over all its attempts; a number is in milliseconds. */
  readonly maxWait?: Duration
  /**
   * The longest that the function may run, up to 1 day; a number is in milliseconds. Then the call rejects with a `TimeoutError`
   * and the function's signal aborts, both at once. The call counts as under way until the function has settled.
   */
  readonly timeout?: Duration
}

/** Calls check their keys, costs and priorities themselves, those of requests too. */
export const RUN = {
  key: unchecked<OneOrSeveral<string> | undefined>(),
  cost: unchecked<number | undefined>(),
  priority: unchecked<number | undefined>(),
  signal: unchecked<AbortSignal | undefined>(),
  maxWait: duration(0, '1d'),
  timeout: duration(1, '1d'),
} satisfies DeclarationOf<RunOptions>

/** The argument of a function that a queue calls. */
export interface RunContext<D extends Decision | undefined = Decision> {
  /** Aborts with the signal of the call and at its timeout; undefined if it has neither. */
  readonly signal: AbortSignal | undefined
  /** The limiter's decision, for example to settle its cost. Undefined in a queue without a limiter. */
  readonly decision: D
  /** Counts from 1. */
  readonly attempt: number
}
