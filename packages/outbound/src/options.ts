import type { Limiter, Semaphore } from '@sluice/core'
import type { Call, Reply } from './call.js'
import { CallQueue } from './call-queue.js'
import type { OutboundEvent, QueueEvent } from './events.js'
import {
  announce,
  invalid,
  isWithin,
  maxWaitMsOf,
  type WaitingOptions,
  waitingSettings,
} from './waiting-options.js'

export interface OutboundOptions extends WaitingOptions {
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
  /**
   * How often a call that was refused (429, 503, 529, or 403 with a pause) is sent again, 0 to 10; default 2. Where one
   * limited client wraps another, the outermost repeats.
   */
  readonly retries?: number
  /**
   * Whether it does no harm to send a call again. Default: GET, HEAD, OPTIONS, TRACE, PUT, DELETE, and whatever carries
   * an `Idempotency-Key`. What can be sent only once, a stream as the body, is never repeated.
   */
  readonly isRetryable?: (call: Call) => boolean
  /**
   * Milliseconds for which a reply asks not to be called, where its headers say so in a way of their own: 0 for no pause,
   * undefined to have them read as usual. A status from 400 on with a pause counts as a refusal.
   */
  readonly pauseOf?: (seen: { readonly reply: Reply }) => number | undefined
  /** Hears what happens to calls. */
  readonly onEvent?: (event: OutboundEvent) => void
}

/** Options with their defaults, for one call after the other. */
export interface Settings {
  readonly queue: CallQueue
  readonly isCounted: boolean
  readonly key: (call: Call) => string
  readonly cost: (call: Call) => number
  readonly priority: (call: Call) => number
  readonly maxWaitMs: number
  readonly retries: number
  readonly isRetryable: (call: Call) => boolean
  readonly pauseOf: (seen: { readonly reply: Reply }) => number | undefined
}

/** @throws {PolicyError} INVALID_OPTION, INVALID_DURATION. */
export function settingsOf(options: OutboundOptions): Settings {
  const { limiter, semaphore, key, cost = 1, priority = 0, onEvent = ignore } = options
  const { retries = 2, isRetryable = isIdempotent, pauseOf = ignore } = options
  if (!isWithin(retries, 0, 10)) throw invalid('retries must be a whole number from 0 to 10')
  if (!['string', 'function', 'undefined'].includes(typeof key))
    throw invalid('key must be a text or a function')
  if (!['number', 'function'].includes(typeof cost)) throw invalid('cost must be a number or a function')
  if (!['number', 'function'].includes(typeof priority))
    throw invalid('priority must be a number or a function')
  for (const [name, value] of Object.entries({ isRetryable, pauseOf, onEvent })) {
    if (typeof value !== 'function') throw invalid(`${name} must be a function`)
  }
  const emit = (event: QueueEvent): void => {
    if (isOutbound(event)) announce(onEvent, event)
  }
  return {
    queue: new CallQueue(waitingSettings(options, limiter, semaphore, emit)),
    isCounted: semaphore !== undefined,
    key: typeof key === 'function' ? key : key === undefined ? (call) => call.url.origin : () => key,
    cost: typeof cost === 'function' ? cost : () => cost,
    priority: typeof priority === 'function' ? priority : () => priority,
    maxWaitMs: maxWaitMsOf(options.maxWait),
    retries,
    isRetryable,
    pauseOf,
  }
}

const OUTBOUND = new Set<string>(['waited', 'denied', 'held', 'resumed'] satisfies OutboundEvent['type'][])

function isOutbound(event: QueueEvent): event is OutboundEvent {
  return OUTBOUND.has(event.type)
}

const IDEMPOTENT = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE'])

function isIdempotent(call: Call): boolean {
  return IDEMPOTENT.has(call.method) || call.header('idempotency-key') !== undefined
}

function ignore(): undefined {}
