import {
  type Duration,
  InputError,
  type Limiter,
  parseDuration,
  PolicyError,
  type Semaphore,
} from '@sluice/core'
import { checkOptionNames } from '@sluice/core/internal'
import type { CallQueueSettings } from './call-queue.js'
import { REPLACEMENTS } from './replaced-options.js'

/** How calls wait, whatever they do. */
export interface WaitingOptions {
  /**
   * The longest that a call waits for permits and turns, over all its attempts: up to 1 day.
   * @default '30s'
   */
  readonly maxWait?: Duration
  /**
   * Turns that this process may reserve in advance per key, 1 to 1000. A newly arrived high-priority call waits for at most
   * this many. Raise it if the process stalls now and then, or for more than a few hundred calls per second with a small
   * burst.
   * @default 1
   */
  readonly prefetch?: number
  /**
   * How late a call may go out after its turn, up to 1 day. A call that a busy process sends later is charged a second turn,
   * so that the limit holds at the other side too.
   * @default 1 % of the shortest window, at least 10 ms
   */
  readonly lateness?: Duration
  /**
   * Most calls that wait in this process for one key, 1 to 1,000,000. Further ones are refused.
   * @default 10_000
   */
  readonly maxQueue?: number
  /**
   * The longest pause that the other side is granted, up to 1 day.
   * @default '15m'
   */
  readonly maxHold?: Duration
}

/** @throws {PolicyError} INVALID_OPTION, INVALID_DURATION. */
export function waitingSettings(
  options: WaitingOptions,
  limiter: Limiter | undefined,
  semaphore: Semaphore | undefined,
): Omit<CallQueueSettings, 'name'> {
  const { prefetch = 1, maxQueue = 10_000, lateness } = options
  // Not instanceof: the ESM and the CJS build of @sluice/core may meet in one process.
  if (limiter !== undefined && typeof limiter?.acquire !== 'function') {
    throw invalid('limiter must be made by createLimiter()')
  }
  if (semaphore !== undefined && typeof semaphore?.acquire !== 'function') {
    throw invalid('semaphore must be made by createSemaphore()')
  }
  if (!isWithin(prefetch, 1, 1000)) throw invalid('prefetch must be a whole number from 1 to 1000')
  if (!isWithin(maxQueue, 1, 1_000_000)) throw invalid('maxQueue must be a whole number from 1 to 1,000,000')
  return {
    limiter,
    semaphore,
    prefetch,
    latenessMs: lateness === undefined ? undefined : durationMs(lateness, 'lateness', 0),
    maxQueue,
    maxHoldMs: durationMs(options.maxHold ?? '15m', 'maxHold', 1),
  }
}

/** @throws {PolicyError} INVALID_DURATION; for an option of one call InputError. */
export function maxWaitMsOf(maxWait: Duration = '30s', error: DurationError = PolicyError): number {
  return durationMs(maxWait, 'maxWait', 0, error)
}

type DurationError = typeof PolicyError | typeof InputError

function durationMs(
  duration: Duration,
  name: string,
  least: number,
  error: DurationError = PolicyError,
): number {
  return parseDuration(duration, name, { least, most: DAY_MS, error })
}

export function isWithin(value: number, least: number, most: number): boolean {
  return Number.isInteger(value) && value >= least && value <= most
}

const WAITING: Record<keyof WaitingOptions, true> = {
  maxWait: true,
  prefetch: true,
  lateness: true,
  maxQueue: true,
  maxHold: true,
}

/**
 * An option that was ignored would change what calls do. One that is undefined counts as left out. `own` has the options
 * beside those of waiting.
 * @throws {PolicyError} INVALID_OPTION, with what to write instead.
 */
export function checkNames<Options extends WaitingOptions>(
  options: Options,
  own: Record<Exclude<keyof Options, keyof WaitingOptions>, true>,
): void {
  if (typeof options !== 'object' || options === null) throw invalid('options must be an object')
  checkOptionNames(options, { ...WAITING, ...own }, REPLACEMENTS)
}

export function invalid(what: string): PolicyError {
  return new PolicyError('INVALID_OPTION', what)
}

const DAY_MS = 86_400_000
