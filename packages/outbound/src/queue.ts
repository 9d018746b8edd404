import {
  createLimiter,
  type Decision,
  type Duration,
  gcra,
  InputError,
  type Limiter,
  PolicyError,
} from '@sluice/core'
import type { Policy, Semaphore } from '@sluice/core'
import { FINAL, type Terms, type Verdict } from './attempt.js'
import { CallQueue, type Outcome, type Task } from './call-queue.js'
import type { QueueEvent } from './events.js'
import type { Turn } from './key-queue.js'
import { announce, invalid, maxWaitMsOf, type WaitingOptions, waitingSettings } from './waiting-options.js'

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

/**
 * Calls of any function under a limit on their rate, and on how many are under way, in one process or across a fleet.
 * @throws {PolicyError} when an option cannot work; see docs/errors.md for the codes.
 */
export function createQueue(options: QueueOptions): Queue {
  return new Queue(options)
}

/** Made by `createQueue`. */
export class Queue {
  readonly #calls: CallQueue
  readonly #options: QueueOptions
  readonly #maxWaitMs: number
  readonly #ownLimiter: Limiter | undefined
  readonly #listeners = new Map<string, Set<(event: never) => void>>()

  constructor(options: QueueOptions) {
    const { limiter, semaphore, key = 'default', cost = 1, priority = 0 } = options
    if (limiter === undefined && semaphore === undefined)
      throw invalid('a limiter or a semaphore is required')
    if (typeof key !== 'string') throw invalid('key must be a text')
    if (typeof cost !== 'number') throw invalid('cost must be a number')
    if (typeof priority !== 'number' || Number.isNaN(priority)) throw invalid('priority must be a number')
    for (const name of ['retry', 'pauseOf', 'onEvent'] as const) {
      const value = options[name]
      if (value !== undefined && typeof value !== 'function') throw invalid(`${name} must be a function`)
    }
    this.#options = options
    this.#maxWaitMs = maxWaitMsOf(options.maxWait)
    this.#ownLimiter = limiter ? undefined : createLimiter({ policies: [gcra(UNLIMITED)] })
    const emit = (event: QueueEvent): void => this.#emit(event)
    this.#calls = new CallQueue(waitingSettings(options, limiter ?? this.#ownLimiter!, semaphore, emit))
  }

  /** Calls that wait. */
  get size(): number {
    return this.#calls.size
  }

  /** Calls that are under way. */
  get pending(): number {
    return this.#calls.pending
  }

  get isPaused(): boolean {
    return this.#calls.isPaused
  }

  /**
   * Calls `fn` when it is its turn, and resolves or rejects as it does.
   * @throws {RateLimitExceededError} when there is no turn in time, or the queue was cleared or closed; InputError
   * INVALID_KEY, INVALID_COST, INVALID_DURATION; the signal's reason when it aborts.
   */
  run<T>(fn: (context: RunContext) => T | PromiseLike<T>, options: RunOptions = {}): Promise<T> {
    return this.#run(options, fn)
  }

  /** A function that does the same when it is its turn. `options` may depend on its arguments. */
  wrap<A extends unknown[], T>(
    fn: (...args: A) => T | PromiseLike<T>,
    options: RunOptions | ((...args: A) => RunOptions) = {},
  ): (...args: A) => Promise<T> {
    const run = (own: RunOptions, call: () => T | PromiseLike<T>): Promise<T> => this.#run(own, call)
    return function queued(this: unknown, ...args) {
      return run(typeof options === 'function' ? options(...args) : options, () => fn.apply(this, args))
    }
  }

  /** Lets no call out until `resume()`. Those that are under way go on, and `maxWait` goes on running out. */
  pause(): void {
    this.#calls.pause()
  }

  resume(): void {
    this.#calls.resume()
  }

  /** Rejects all calls that wait with `RateLimitExceededError`, reason 'cleared'. Returns how many. */
  clear(): number {
    return this.#calls.refuseAll((keyQueue) => keyQueue.exceeded('cleared'))
  }

  /** Resolves when no call waits or is under way; at once if that is so. */
  onIdle(): Promise<void> {
    return this.#calls.onIdle()
  }

  /**
   * Other policies from now on, also for the calls that wait. Lists of equal shapes (algorithms, windows, in order) go on
   * with what was consumed; another list starts anew. Each process sets its own.
   * @throws {PolicyError} INVALID_POLICIES.
   */
  setPolicies(policies: readonly Policy[]): void {
    if (
      !Array.isArray(policies) ||
      policies.length === 0 ||
      !policies.every((policy) => policy?.windowMs > 0)
    ) {
      throw new PolicyError(
        'INVALID_POLICIES',
        'policies must be a list of policies made by gcra() and the like',
      )
    }
    this.#calls.setPolicies(policies)
  }

  /** Listens to one kind of event; returns what ends it. */
  on<K extends QueueEvent['type']>(
    type: K,
    listener: (event: Extract<QueueEvent, { readonly type: K }>) => void,
  ): () => void {
    const listeners = this.#listeners.get(type) ?? new Set()
    this.#listeners.set(type, listeners)
    listeners.add(listener)
    return () => void listeners.delete(listener)
  }

  /**
   * Refuses new calls. Those that wait are rejected, reason 'closed', or with `drain` made first. Resolves when none is
   * under way. The limiter and the semaphore are closed by their makers.
   */
  async close({ drain = false }: { readonly drain?: boolean } = {}): Promise<void> {
    await this.#calls.close(drain)
    await this.#ownLimiter?.close()
  }

  #run<T>(options: RunOptions, fn: (context: RunContext) => T | PromiseLike<T>): Promise<T> {
    try {
      return this.#calls.run(this.#termsOf(options), new QueueTask(fn, options.signal, this.#options))
    } catch (error) {
      return Promise.reject(error as Error)
    }
  }

  #termsOf({ key, cost, priority, signal, maxWait }: RunOptions): Terms {
    const own = this.#options
    return {
      key: key ?? own.key ?? 'default',
      cost: cost ?? own.cost ?? 1,
      priority: checkPriority(priority ?? own.priority ?? 0),
      maxWaitMs: maxWait === undefined ? this.#maxWaitMs : maxWaitMsOf(maxWait, InputError),
      signal,
    }
  }

  #emit(event: QueueEvent): void {
    const { onEvent } = this.#options
    if (onEvent) announce(onEvent, event)
    for (const listener of this.#listeners.get(event.type) ?? []) announce(listener, event as never)
  }
}

class QueueTask<T> implements Task<T> {
  readonly #fn: (context: RunContext) => T | PromiseLike<T>
  readonly #signal: AbortSignal | undefined
  readonly #options: QueueOptions
  #attempt = 0

  constructor(
    fn: (context: RunContext) => T | PromiseLike<T>,
    signal: AbortSignal | undefined,
    options: QueueOptions,
  ) {
    this.#fn = fn
    this.#signal = signal
    this.#options = options
  }

  start({ decision }: Turn): T | PromiseLike<T> {
    const fn = this.#fn
    return fn({ signal: this.#signal, decision, attempt: ++this.#attempt })
  }

  judge(outcome: Outcome<T>, times: number): Verdict {
    if ('value' in outcome) return SUCCEEDED
    const { pauseOf, retry } = this.#options
    const pauseMs = pauseOf?.({ error: outcome.error }) ?? 0
    const again = retry?.(outcome.error, times) ?? false
    return {
      succeeded: false,
      pauseMs: pauseMs > 0 ? pauseMs : 0,
      again: typeof again === 'number' && again >= 0 ? again : false,
    }
  }

  deliver(value: T, turn: Turn): T {
    turn.release()
    return value
  }

  discard(): void {}
}

const SUCCEEDED: Verdict = { ...FINAL, succeeded: true }

/** No call ever waits for it, but it can be held. */
const UNLIMITED = { limit: 1_000_000_000, window: '1s' } as const

function checkPriority(priority: number): number {
  if (typeof priority === 'number' && !Number.isNaN(priority)) return priority
  throw new InputError('INVALID_PRIORITY', `priority must be a number, got ${String(priority)}`)
}
