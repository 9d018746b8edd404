import type { Decision, Duration, Limiter, Semaphore } from '@sluice/core'
import type { QueueEvent } from './events.js'
import type { WaitingOptions } from './waiting-options.js'

export interface QueueOptions extends WaitingOptions {
  /** Gives calls their turn. Default: no limit but that of the semaphore, which is required then. */
  readonly limiter?: Limiter
  /** Bounds how many calls are under way at once. Default: not bounded. */
  readonly semaphore?: Semaphore
  /** Whose limit a call counts under, where the call does not say. Default 'default'. */
  readonly key?: string
  /** Units that a call takes, where the call does not say. Default 1. */
  readonly cost?: number
  /** Which of the calls that wait in this process goes first, where the call does not say: the highest number. Default 0. */
  readonly priority?: number
  /**
   * After how many milliseconds a function that failed is called again, at its next turn then; false: never. `attempt`
   * says how often it was called. A time that ends after `maxWait` is as good as false. Default: never.
   */
  readonly retry?: (error: unknown, attempt: number) => number | false
  /**
   * Milliseconds for which all calls of the key are to pause after this failure, in every process that shares the
   * limiter's store: 0 or undefined for none. Default: none.
   */
  readonly pauseOf?: (seen: { readonly error: unknown }) => number | undefined
  /** Hears everything that happens; `queue.on` one kind of it. */
  readonly onEvent?: (event: QueueEvent) => void
}

export interface RunOptions {
  /** Whose limit the call counts under. */
  readonly key?: string
  /** Units that it takes: a whole number from 0 to 2^31. */
  readonly cost?: number
  /** Any number; calls with a higher one go first. */
  readonly priority?: number
  /** Ends the wait, and rejects with its reason. What runs has to listen itself. */
  readonly signal?: AbortSignal
  /** The longest that it waits, repetitions included. */
  readonly maxWait?: Duration
}

/** What a function gets when it is called. */
export interface RunContext {
  readonly signal: AbortSignal | undefined
  /** The decision that let the call out, for example to settle its cost. */
  readonly decision: Decision
  /** How often it was called, this time included. */
  readonly attempt: number
}
