import { type Duration, type Limiter, parseDuration, PolicyError, type Semaphore } from '@sluice/core'
import type { Call } from './call.js'
import type { OutboundEvent } from './events.js'

export interface OutboundOptions {
  /** Gives calls their turn, and is held when the other side asks for a pause. */
  readonly limiter: Limiter
  /** Bounds how many calls are under way at once. Default: not bounded. */
  readonly semaphore?: Semaphore
  /** Whose limit a call counts under; one for all, or a function. Default: the origin of the URL. */
  readonly key?: string | ((call: Call) => string)
  /** Units that a call takes. Default 1. */
  readonly cost?: number | ((call: Call) => number)
  /** Which of the calls that wait in this process goes first: the one with the highest number. Default 0. */
  readonly priority?: number | ((call: Call) => number)
  /** The longest that a call waits for turns and places, repetitions included: up to 1 day, default 30 s. */
  readonly maxWait?: Duration
  /**
   * How many places this process books ahead for one key, 1 to 1000; default 1. A call of high priority waits for as
   * many. More make up for stalls of the process, and for a rate above a few hundred a second with little burst.
   */
  readonly ahead?: number
  /**
   * How late a call may go out after its turn, up to 1 day; one that is later, because the process was busy, pays for
   * one more place, so that the limit holds at the other side too. Default 1 % of the shortest window, at least 10 ms.
   */
  readonly lateness?: Duration
  /** Most calls that wait in this process for one key; default 10,000. */
  readonly maxQueue?: number
  /** The longest pause that the other side is granted, up to 1 day; default 15 min. */
  readonly maxHold?: Duration
  /** How often a call that was refused with 429 or 503 is sent again, 0 to 10; default 2. */
  readonly retries?: number
  /**
   * Whether it does no harm to send a call again. Default: GET, HEAD, OPTIONS, TRACE, PUT, DELETE, and whatever carries
   * an `Idempotency-Key`. What can be sent only once, a stream as the body, is never repeated.
   */
  readonly repeatable?: (call: Call) => boolean
  /** Hears what happens to calls. */
  readonly onEvent?: (event: OutboundEvent) => void
}

/** Options with their defaults, for one call after the other. */
export interface Settings {
  readonly limiter: Limiter
  readonly semaphore: Semaphore | undefined
  readonly key: (call: Call) => string
  readonly cost: (call: Call) => number
  readonly priority: (call: Call) => number
  readonly maxWaitMs: number
  readonly ahead: number
  readonly latenessMs: number | undefined
  readonly maxQueue: number
  readonly maxHoldMs: number
  readonly retries: number
  readonly repeatable: (call: Call) => boolean
  readonly onEvent: (event: OutboundEvent) => void
}

/** @throws {PolicyError} INVALID_OPTION, INVALID_DURATION. */
export function settingsOf(options: OutboundOptions): Settings {
  const { limiter, semaphore, key, cost = 1, priority = 0, lateness, onEvent = ignore } = options
  const { ahead = 1, maxQueue = 10_000, retries = 2, repeatable = isIdempotent } = options
  // Not instanceof: the ESM and the CJS build of the core may meet in one process.
  if (typeof limiter?.acquire !== 'function') throw invalid('limiter must be made by createLimiter()')
  if (semaphore !== undefined && typeof semaphore?.acquire !== 'function') {
    throw invalid('semaphore must be made by createSemaphore()')
  }
  if (!isWithin(ahead, 1, 1000)) throw invalid('ahead must be a whole number from 1 to 1000')
  if (!isWithin(maxQueue, 1, 1_000_000)) throw invalid('maxQueue must be a whole number from 1 to 1,000,000')
  if (!isWithin(retries, 0, 10)) throw invalid('retries must be a whole number from 0 to 10')
  if (!['string', 'function', 'undefined'].includes(typeof key))
    throw invalid('key must be a text or a function')
  if (!['number', 'function'].includes(typeof cost)) throw invalid('cost must be a number or a function')
  if (!['number', 'function'].includes(typeof priority))
    throw invalid('priority must be a number or a function')
  if (typeof repeatable !== 'function') throw invalid('repeatable must be a function')
  if (typeof onEvent !== 'function') throw invalid('onEvent must be a function')
  return {
    limiter,
    semaphore,
    key: typeof key === 'function' ? key : key === undefined ? (call) => call.url.origin : () => key,
    cost: typeof cost === 'function' ? cost : () => cost,
    priority: typeof priority === 'function' ? priority : () => priority,
    maxWaitMs: parseDuration(options.maxWait ?? '30s', 'maxWait', {
      least: 0,
      most: DAY_MS,
      error: PolicyError,
    }),
    ahead,
    latenessMs:
      lateness === undefined
        ? undefined
        : parseDuration(lateness, 'lateness', { least: 0, most: DAY_MS, error: PolicyError }),
    maxQueue,
    maxHoldMs: parseDuration(options.maxHold ?? '15m', 'maxHold', { most: DAY_MS, error: PolicyError }),
    retries,
    repeatable,
    onEvent: (event) => {
      try {
        onEvent(event)
      } catch (error) {
        queueMicrotask(() => {
          throw error // a listener changes nothing about the call
        })
      }
    },
  }
}

const DAY_MS = 86_400_000
const IDEMPOTENT = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE'])

function isIdempotent(call: Call): boolean {
  return IDEMPOTENT.has(call.method) || call.header('idempotency-key') !== undefined
}

function isWithin(value: number, least: number, most: number): boolean {
  return Number.isInteger(value) && value >= least && value <= most
}

function invalid(what: string): PolicyError {
  return new PolicyError('INVALID_OPTION', what)
}

function ignore(): void {}
