import {
  type Duration,
  type InputError,
  type Limiter,
  parseDuration,
  PolicyError,
  type Semaphore,
} from '@sluice/core'
import type { CallQueueSettings } from './call-queue.js'
import type { QueueEvent } from './events.js'

/** How calls wait, for whatever they do. */
export interface WaitingOptions {
  /** The longest that a call waits for turns and places, repetitions included: up to 1 day, default 30 s. */
  readonly maxWait?: Duration
  /**
   * How many places this process books ahead for one key, 1 to 1000; default 1. A call of high priority waits for as
   * many. More make up for stalls of the process, and for a rate above a few hundred a second with little burst.
   */
  readonly prefetch?: number
  /**
   * How late a call may go out after its turn, up to 1 day; one that is later, because the process was busy, pays for
   * one more place, so that the limit holds at the other side too. Default 1 % of the shortest window, at least 10 ms.
   */
  readonly lateness?: Duration
  /** Most calls that wait in this process for one key, 1 to 1,000,000; default 10,000. */
  readonly maxQueue?: number
  /** The longest pause that the other side is granted, up to 1 day; default 15 min. */
  readonly maxHold?: Duration
}

/** @throws {PolicyError} INVALID_OPTION, INVALID_DURATION. */
export function waitingSettings(
  options: WaitingOptions,
  limiter: Limiter,
  semaphore: Semaphore | undefined,
  emit: (event: QueueEvent) => void,
): CallQueueSettings {
  refuseFormerNames(options)
  const { prefetch = 1, maxQueue = 10_000, lateness } = options
  // Not instanceof: the ESM and the CJS build of the core may meet in one process.
  if (typeof limiter?.acquire !== 'function') throw invalid('limiter must be made by createLimiter()')
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
    emit,
  }
}

/** @throws {PolicyError} INVALID_DURATION, or the error of a call. */
export function maxWaitMsOf(maxWait: Duration = '30s', error: ErrorClass = PolicyError): number {
  return durationMs(maxWait, 'maxWait', 0, error)
}

type ErrorClass = typeof PolicyError | typeof InputError

function durationMs(
  duration: Duration,
  name: string,
  least: number,
  error: ErrorClass = PolicyError,
): number {
  return parseDuration(duration, name, { least, most: DAY_MS, error })
}

/** Calls a listener, whose errors change nothing about a call: they are thrown where nothing catches them. */
export function announce<E>(listener: (event: E) => void, event: E): void {
  try {
    listener(event)
  } catch (error) {
    queueMicrotask(() => {
      throw error
    })
  }
}

export function isWithin(value: number, least: number, most: number): boolean {
  return Number.isInteger(value) && value >= least && value <= most
}

/** Options of former versions: ignored, each would change what calls do without a word. */
function refuseFormerNames(options: object): void {
  for (const [former, name] of Object.entries(FORMER_NAMES)) {
    if (Object.hasOwn(options, former)) throw invalid(`${former} is called ${name}`)
  }
}

const FORMER_NAMES = { ahead: 'prefetch', repeatable: 'isRetryable' }

export function invalid(what: string): PolicyError {
  return new PolicyError('INVALID_OPTION', what)
}

const DAY_MS = 86_400_000
