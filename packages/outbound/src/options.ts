import type { Limiter, Semaphore } from '@sluice/core'
import { CallQueue } from './call-queue.js'
import { OUTBOUND_EVENTS, type OutboundEvent } from './events.js'
import type { OutboundReply, OutboundRequest } from './request.js'
import {
  checkNames,
  invalid,
  isWithin,
  maxWaitMsOf,
  type WaitingOptions,
  waitingSettings,
} from './waiting-options.js'

export interface OutboundOptions extends WaitingOptions {
  /** Gives calls their turn. Its key is held when the other side asks for a pause. */
  readonly limiter: Limiter
  /**
   * Bounds how many calls are under way at once.
   * @default not bounded
   */
  readonly semaphore?: Semaphore
  /**
   * The key whose limit a call counts under: one for all calls, or a function of the request.
   * @default the origin of the URL
   */
  readonly key?: string | ((request: OutboundRequest) => string)
  /**
   * Units that a call takes.
   * @default 1
   */
  readonly cost?: number | ((request: OutboundRequest) => number)
  /**
   * Of the calls that wait in this process, that with the highest number goes first.
   * @default 0
   */
  readonly priority?: number | ((request: OutboundRequest) => number)
  /**
   * How often a request that was refused (429, 503, 529, or 403 with a pause) is sent again, 0 to 10. If one limited client
   * wraps another, the outermost retries.
   * @default 2
   */
  readonly retries?: number
  /**
   * Whether a request may be sent again after a refusal. A body that can be read only once, such as a stream, is never sent
   * again.
   * @default GET, HEAD, OPTIONS, TRACE, PUT, DELETE, and requests with an `Idempotency-Key`
   */
  readonly isRetryable?: (request: OutboundRequest) => boolean
  /**
   * Reads a provider's own headers. Returns for how many milliseconds a reply asks for a pause: 0 for none, undefined to
   * have the usual headers read. A status of 400 or more with a pause counts as a refusal.
   */
  readonly pauseOf?: (outcome: { readonly reply: OutboundReply }) => number | undefined
  /** Called with what happens to calls. */
  readonly onEvent?: (event: OutboundEvent) => void
}

/** The options of a client with their defaults, and the queue of its calls. */
export interface OutboundSettings {
  readonly queue: CallQueue
  readonly isCounted: boolean
  readonly key: OutboundOptions['key']
  readonly cost: NonNullable<OutboundOptions['cost']>
  readonly priority: NonNullable<OutboundOptions['priority']>
  readonly maxWaitMs: number
  readonly retries: number
  readonly isRetryable: (request: OutboundRequest) => boolean
  readonly pauseOf: OutboundOptions['pauseOf']
}

/** @throws {PolicyError} INVALID_OPTION, INVALID_DURATION. */
export function settingsOf(options: OutboundOptions): OutboundSettings {
  checkNames(options, OPTIONS)
  const { limiter, semaphore, key, cost = 1, priority = 0, onEvent } = options
  const { retries = 2, isRetryable = isIdempotent, pauseOf } = options
  if (limiter === undefined) throw invalid('a limiter is required, made by createLimiter()')
  if (!isWithin(retries, 0, 10)) throw invalid('retries must be a whole number from 0 to 10')
  if (!['string', 'function', 'undefined'].includes(typeof key))
    throw invalid('key must be a string or a function')
  if (!['number', 'function'].includes(typeof cost)) throw invalid('cost must be a number or a function')
  if (!['number', 'function'].includes(typeof priority) || Number.isNaN(priority))
    throw invalid('priority must be a number or a function')
  for (const [name, value] of Object.entries({ isRetryable, pauseOf, onEvent })) {
    if (value !== undefined && typeof value !== 'function') throw invalid(`${name} must be a function`)
  }
  const queue = new CallQueue({ name: undefined, ...waitingSettings(options, limiter, semaphore) })
  if (onEvent) for (const type of OUTBOUND_EVENTS) queue.listeners.on(type, onEvent)
  const maxWaitMs = maxWaitMsOf(options.maxWait)
  const isCounted = semaphore !== undefined
  return { queue, isCounted, key, cost, priority, maxWaitMs, retries, isRetryable, pauseOf }
}

const OPTIONS: Record<Exclude<keyof OutboundOptions, keyof WaitingOptions>, true> = {
  limiter: true,
  semaphore: true,
  key: true,
  cost: true,
  priority: true,
  retries: true,
  isRetryable: true,
  pauseOf: true,
  onEvent: true,
}

const IDEMPOTENT = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE'])

function isIdempotent(request: OutboundRequest): boolean {
  return IDEMPOTENT.has(request.method) || request.header('idempotency-key') !== undefined
}
