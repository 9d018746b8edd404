import { createLimiter, gcra, InputError, type Limiter, type Policy, PolicyError } from '@sluice/core'
import { type CallTerms, CallQueue } from './call-queue.js'
import type { QueueEvent } from './events.js'
import { QUEUE_OPTIONS, type QueueOptions, type RunContext, type RunOptions } from './queue-options.js'
import { QueueTask } from './queue-task.js'
import { runTask } from './run-task.js'
import {
  announce,
  checkNames,
  checkPriority,
  invalid,
  maxWaitMsOf,
  waitingSettings,
} from './waiting-options.js'

/**
 * Makes a queue that calls any function under a limit on the rate, on concurrency, or both, in one process or across a
 * fleet.
 * @example
 * const limiter = createLimiter({ policies: [gcra({ limit: 10, window: '1s', burst: 1 })] })
 * const queue = createQueue({ limiter, semaphore: createSemaphore({ limit: 5 }) })
 * const rows = await queue.run(() => query('a'), { priority: 1, maxWait: '1m' })
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
    checkNames(options, QUEUE_OPTIONS)
    const { limiter, semaphore, key = 'default', cost = 1, priority = 0 } = options
    if (limiter === undefined && semaphore === undefined)
      throw invalid('a limiter or a semaphore is required')
    if (typeof key !== 'string') throw invalid('key must be a string')
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
   * Calls `fn` when it is its turn, and resolves or rejects as `fn` does.
   * @throws {RateLimitExceededError} when there is no turn in time, or the queue was cleared or closed; InputError
   * INVALID_KEY, INVALID_COST, INVALID_DURATION, INVALID_PRIORITY; the signal's reason when it aborts.
   */
  run<T>(fn: (context: RunContext) => T | PromiseLike<T>, options: RunOptions = {}): Promise<T> {
    return this.#run(options, fn)
  }

  /** Makes a function that calls `fn` when it is its turn. `options` may be a function of its arguments. */
  wrap<A extends unknown[], T>(
    fn: (...args: A) => T | PromiseLike<T>,
    options: RunOptions | ((...args: A) => RunOptions) = {},
  ): (...args: A) => Promise<T> {
    const run = (own: RunOptions, call: () => T | PromiseLike<T>): Promise<T> => this.#run(own, call)
    return function queued(this: unknown, ...args) {
      return run(typeof options === 'function' ? options(...args) : options, () => fn.apply(this, args))
    }
  }

  /** Starts no call until `resume()`. Calls under way go on, and so does `maxWait` of waiting ones. */
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

  /** Resolves as soon as no call waits or is under way. */
  onIdle(): Promise<void> {
    return this.#calls.onIdle()
  }

  /**
   * Sets other policies, also for the calls that wait. Consumed units still count if the new list has the same shapes
   * (algorithms and windows, in order); a list of other shapes starts with a full allowance. Each process sets its own.
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

  /** Listens to one type of event. Returns a function that removes the listener. */
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
   * Refuses new calls. Waiting calls are rejected, reason 'closed'; with `drain` they are made first. Resolves when no call
   * is under way. The limiter and the semaphore stay open.
   */
  async close({ drain = false }: { readonly drain?: boolean } = {}): Promise<void> {
    await this.#calls.close(drain)
    await this.#ownLimiter?.close()
  }

  #run<T>(options: RunOptions, fn: (context: RunContext) => T | PromiseLike<T>): Promise<T> {
    try {
      return runTask(this.#calls, this.#termsOf(options), new QueueTask(fn, options.signal, this.#options))
    } catch (error) {
      return Promise.reject(error)
    }
  }

  #termsOf({ key, cost, priority, signal, maxWait }: RunOptions): CallTerms {
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

/** A limit for which no call ever waits; its key can be held. */
const UNLIMITED = { limit: 1_000_000_000, window: '1s' } as const
